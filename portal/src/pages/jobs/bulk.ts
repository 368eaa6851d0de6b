// One action on many jobs. Pure but for the call that it is given.

import type { Job } from "@/api/types";
import { FINAL } from "../job/project";

export type BulkVerb = "stop" | "pause" | "resume" | "priority";

/** Those that an action makes sense for: nobody stops what has ended. */
export function fitting<T extends Job>(jobs: readonly T[], verb: BulkVerb): T[] {
  return jobs.filter((j) => !FINAL.has(j.state) && fits(j, verb));
}

function fits(job: Job, verb: BulkVerb): boolean {
  const held = job.state === "paused" || job.reason_code === "held";
  switch (verb) {
    case "stop":
      return job.state !== "stopping";
    case "pause":
      return !held && job.state !== "stopping";
    case "resume":
      return held;
    case "priority":
      return true;
  }
}

export interface Outcome {
  done: number;
  failed: { id: string; error: unknown }[];
}

/** A few at a time; one that fails leaves the others alone. */
export async function each(
  ids: readonly string[],
  act: (id: string) => Promise<unknown>,
  tell: (done: number) => void,
  width = 4,
): Promise<Outcome> {
  const out: Outcome = { done: 0, failed: [] };
  const queue = [...ids];
  const worker = async () => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      try {
        await act(id);
        out.done += 1;
      } catch (error) {
        out.failed.push({ id, error });
      }
      tell(out.done + out.failed.length);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, ids.length) }, worker));
  return out;
}
