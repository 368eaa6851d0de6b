import { request } from "./client";

/** Saves an answer as a file. By a link the browser would ask without the key of the session. */
export async function save(at: string, name: string): Promise<void> {
  const response = await request(at);
  const url = URL.createObjectURL(await response.blob());
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
