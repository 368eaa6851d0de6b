import { api, data } from "@/api/client";
import type { JobSubmitted } from "@/api/types";

/** The same text sent twice by one click too many is one job. */
let last: { text: string; hold: boolean; key: string } | undefined;

function keyFor(text: string, hold: boolean): string {
  if (last?.text !== text || last.hold !== hold) last = { text, hold, key: random() };
  return last.key;
}

/** Also where the page is not served over TLS, and the browser keeps `randomUUID` to itself. */
function random(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}

export async function submitJob(file: string, hold: boolean): Promise<JobSubmitted> {
  const answer = await data(
    api.POST("/v1/jobs", {
      params: {
        query: hold ? { hold } : {},
        header: { "Idempotency-Key": keyFor(file, hold) },
      },
      body: file,
      bodySerializer: (body) => body,
      headers: { "content-type": "application/yaml" },
    }),
  );
  // The next one is meant, even with the same text.
  last = undefined;
  return answer;
}
