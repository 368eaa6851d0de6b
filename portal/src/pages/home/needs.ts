import type { Budget, Job } from "@/api/types";
import { NEVER } from "../new-job/model/never";

/** Something that a person should look at, the most urgent kind first. */
export type Need =
  | { kind: "failed"; job: Job }
  | { kind: "idle"; job: Job; idleMs: number; wasted: number }
  | { kind: "never"; job: Job }
  | { kind: "budget"; budget: Budget; part: number }
  | { kind: "paused"; job: Job };

/** What figures say of a running job. */
export interface Idle {
  job: Job;
  /** How long nothing was computed, up to now. */
  idleMs: number;
}

/** Shorter pauses are part of many programs: loading, saving, evaluating. */
export const IDLE_FOR_MS = 10 * 60_000;

export interface Known {
  now: number;
  open: readonly Job[];
  failed: readonly Job[];
  idle: readonly Idle[];
  budgets: readonly Budget[];
  /** Queues whose budget concerns one. */
  teams: ReadonlySet<string>;
}

export function needsOf(known: Known): Need[] {
  const out: Need[] = [];
  const since = yesterday(known.now);
  for (const job of known.failed)
    if (job.ended && Date.parse(job.ended) >= since) out.push({ kind: "failed", job });
  for (const { job, idleMs } of known.idle)
    if (idleMs >= IDLE_FOR_MS) out.push({ kind: "idle", job, idleMs, wasted: wasted(job, idleMs) });
  for (const job of known.open)
    if (job.state === "pending" && NEVER.has(job.reason_code ?? ""))
      out.push({ kind: "never", job });
  for (const budget of known.budgets) {
    if (!known.teams.has(budget.queue)) continue;
    const part = partOf(budget);
    if (part >= nearFrom(budget)) out.push({ kind: "budget", budget, part });
  }
  for (const job of known.open) if (job.state === "paused") out.push({ kind: "paused", job });
  return out.sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || weight(b) - weight(a));
}

const ORDER: Record<Need["kind"], number> = { failed: 0, idle: 1, never: 2, budget: 3, paused: 4 };

function weight(need: Need): number {
  switch (need.kind) {
    case "failed":
      return Date.parse(need.job.ended ?? "") || 0;
    case "idle":
      return need.wasted;
    case "budget":
      return need.part;
    default:
      return Number(need.job.id.split("_")[0]);
  }
}

/** The beginning of yesterday, where the reader is. */
export function yesterday(now: number): number {
  const d = new Date(now);
  d.setHours(0, 0, 0, 0);
  d.setDate(d.getDate() - 1);
  return d.getTime();
}

export function today(now: number): number {
  const d = new Date(now);
  d.setHours(0, 0, 0, 0);
  return d.getTime();
}

/** Weeks begin on Monday. */
export function thisWeek(now: number): number {
  const d = new Date(today(now));
  d.setDate(d.getDate() - ((d.getDay() + 6) % 7));
  return d.getTime();
}

export function wasted(job: Job, idleMs: number): number {
  return Math.round(((job.price_micros_per_hour ?? 0) * idleMs) / 3_600_000);
}

/** Percent of the limit. */
export function partOf(budget: Budget): number {
  return budget.limit_micros > 0 ? (budget.spent_micros / budget.limit_micros) * 100 : 100;
}

/** From where on it is nearly spent: its own first threshold, or 80 %. */
function nearFrom(budget: Budget): number {
  return Math.min(80, ...budget.thresholds_milli.map((t) => t / 10));
}

/** People of a team who wait, with the longest wait first. */
export interface Blocked {
  user: string;
  jobs: Job[];
  since: number;
}

export function blockedOf(jobs: readonly Job[]): Blocked[] {
  const out = new Map<string, Blocked>();
  for (const job of jobs) {
    const one = out.get(job.user) ?? { user: job.user, jobs: [], since: Number.MAX_SAFE_INTEGER };
    one.jobs.push(job);
    one.since = Math.min(one.since, Date.parse(job.submitted));
    out.set(job.user, one);
  }
  return [...out.values()].sort((a, b) => a.since - b.since);
}
