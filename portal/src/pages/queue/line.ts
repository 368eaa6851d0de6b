import type { Job } from "@/api/types";

/** By place within a queue, and across queues by when they are likely to start. */
export function inOrder(jobs: readonly Job[], oneQueue: boolean): Job[] {
  return [...jobs].sort((a, b) => {
    if (oneQueue) return place(a) - place(b) || Number(a.id) - Number(b.id);
    return start(a) - start(b) || place(a) - place(b) || a.submitted.localeCompare(b.submitted);
  });
}

const place = (j: Job) => j.position ?? Number.MAX_SAFE_INTEGER;
const start = (j: Job) => (j.eta ? Date.parse(j.eta) : Number.MAX_SAFE_INTEGER);

/** Who starts next: the one that nothing stands in the way of, or else the first to start. */
export function nextOf(jobs: readonly Job[]): Job | undefined {
  return jobs.find((j) => j.reason_code === "next") ?? inOrder(jobs, false).find((j) => j.eta);
}

/** What another priority does to the line of its queue, by priority alone. */
export interface Effect {
  /** Who is behind it then, and was before it. */
  passes: Job[];
  /** Who is before it then, and was behind it. */
  lets: Job[];
}

export function effectOf(job: Job, priority: number, line: readonly Job[]): Effect {
  const others = line.filter((j) => j.id !== job.id && j.team === job.team && j.position);
  const mine = place(job);
  return {
    passes: others.filter((j) => place(j) < mine && j.priority < priority),
    lets: others.filter((j) => place(j) > mine && j.priority > priority),
  };
}

/** The class that takes a job to where it was dropped; none where that takes no other class. */
export function classFor(
  job: Job,
  target: Job,
  classes: readonly { name: string; value: number }[],
): string | undefined {
  if (job.id === target.id || job.team !== target.team) return undefined;
  const up = place(target) < place(job);
  const sorted = [...classes].sort((a, b) => a.value - b.value);
  const fit = up
    ? // Before one of the same class only the next higher one goes.
      sorted.find((c) => c.value > target.priority)
    : sorted.reverse().find((c) => c.value < target.priority);
  return fit && fit.value !== job.priority ? fit.name : undefined;
}
