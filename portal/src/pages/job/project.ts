// When a job ends and what it will have cost, as far as that can be said. Pure.

import type { Attempt, Job, Plan } from "@/api/types";
import { millis } from "@/lib/format";
import { hasKey, keyOf, lengthOf } from "./file";

export interface Projection {
  /** When it is expected to end; none of one that waits or has ended. */
  endsAt: number | undefined;
  /** When its time limit ends it. */
  limitAt: number | undefined;
  limitMs: number | undefined;
  /** What it will have cost then, in millionths of a dollar. */
  projected: number | undefined;
  /** The same at the time limit: no run costs more. */
  most: number | undefined;
  /** Where the expected end comes from. */
  basis: "estimate" | "limit" | undefined;
}

export const FINAL = new Set(["done", "failed", "cancelled"]);
export const HOLDS = new Set(["starting", "running", "stopping"]);

/** An array as one job: its elements run, and each has a time, a log and files of its own. */
export function isArray(job: Job): boolean {
  return !job.id.includes("_") && /^of \d+ elements?:/.test(job.reason ?? "");
}

const NOTHING: Projection = {
  endsAt: undefined,
  limitAt: undefined,
  limitMs: undefined,
  projected: undefined,
  most: undefined,
  basis: undefined,
};

/** How long attempts computed before the one that runs. */
function ranBefore(attempts: readonly Attempt[]): number {
  let ms = 0;
  for (const a of attempts) {
    const from = millis(a.started);
    const to = millis(a.closed);
    if (from !== undefined && to !== undefined) ms += Math.max(0, to - from);
  }
  return ms;
}

export function project(
  job: Job,
  now: number,
  known: {
    plan?: Plan | undefined;
    file?: string | undefined;
    attempts?: readonly Attempt[] | undefined;
  },
): Projection {
  if (FINAL.has(job.state)) return NOTHING;
  const limitMs = lengthOf(keyOf(known.file, "time"));
  const estimate = known.plan?.estimate_ms ?? limitMs;
  const price = job.price_micros_per_hour ?? known.plan?.price_micros_per_hour ?? undefined;
  const hours = (ms: number) =>
    price === undefined ? undefined : Math.round((price * ms) / 3_600_000);
  const own = job.projected_micros ?? undefined;

  const started = millis(job.started);
  const last = known.attempts?.at(-1);
  const runs = job.state === "running" ? (millis(last?.started) ?? started) : undefined;
  if (runs === undefined) {
    // Nothing holds GPUs now: what is to come is the whole run, beside what was paid so far.
    const more = estimate === undefined ? undefined : hours(estimate);
    return {
      ...NOTHING,
      limitMs,
      projected: own ?? (more === undefined ? undefined : job.cost_micros + more),
      most: limitMs === undefined ? undefined : add(job.cost_micros, hours(limitMs)),
    };
  }
  // A job that saves goes on where it was; another one begins anew.
  const before = hasKey(known.file, "checkpoint") ? ranBefore(known.attempts ?? []) : 0;
  const limitAt = limitMs === undefined ? undefined : runs + limitMs;
  const asEstimated = estimate === undefined ? undefined : runs + estimate - before;
  // One that runs longer than expected ends at its limit, as far as anybody knows.
  const fits = asEstimated !== undefined && asEstimated > now;
  const endsAt = fits ? asEstimated : limitAt !== undefined && limitAt > now ? limitAt : undefined;
  return {
    endsAt,
    limitAt,
    limitMs,
    projected:
      own ?? (endsAt === undefined ? undefined : add(job.cost_micros, hours(endsAt - now))),
    most:
      limitAt === undefined ? undefined : add(job.cost_micros, hours(Math.max(0, limitAt - now))),
    basis:
      endsAt === undefined
        ? undefined
        : endsAt === limitAt || !known.plan?.estimate_ms
          ? "limit"
          : "estimate",
  };
}

function add(a: number, b: number | undefined): number | undefined {
  return b === undefined ? undefined : a + b;
}
