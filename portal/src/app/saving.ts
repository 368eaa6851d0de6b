import { asApiError } from "@/api/error";
import { save } from "@/api/save";
import { toast } from "@/design";

/** Saves what the server has at an address, and says so where that fails. */
export async function saveOrSay(at: string, file: string): Promise<void> {
  try {
    await save(at, file);
  } catch (e) {
    toast(`Not saved: ${asApiError(e).message}`, { tone: "bad" });
  }
}
