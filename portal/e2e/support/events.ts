// A listener to the stream of events, as a page of the portal is one.
import type { Server } from "./server";

/** Each event as its JSON. The answer ends it. */
export async function listen(server: Server, heard: (event: string) => void): Promise<() => void> {
  const stop = new AbortController();
  const answer = await fetch(`${server.url}/v1/events?kind=job,node,queue,alert`, {
    headers: { authorization: `Bearer ${server.admin}` },
    signal: stop.signal,
  });
  const reader = answer.body?.getReader();
  const text = new TextDecoder();
  let rest = "";
  (async () => {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) return;
      const lines = (rest + text.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("data:")) heard(line);
    }
  })().catch(() => undefined);
  return () => stop.abort();
}
