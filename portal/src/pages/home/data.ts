import { useQueries, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { budgetsQuery, costQuery, jobFiguresQuery, someJobsQuery } from "@/api/queries";
import type { Budget, CostReport, Job, JobFigures } from "@/api/types";
import { useNow } from "@/lib/now";
import { forecastQuery } from "../costs/routes";
import type { Idle } from "./needs";
import { thisWeek, today, yesterday } from "./needs";

const MOST_OPEN = 200;
/** So many of one's running jobs are looked at closely. */
export const MOST_FIGURES = 8;
const NO_JOBS: Job[] = [];
const NO_BUDGETS: Budget[] = [];

/** A moment that holds still for an hour, so that what is asked with it is asked once. */
export function useHour(): number {
  return useNow(3_600_000);
}

export function useMine(user: string, team: string | undefined) {
  const hour = useHour();
  const of = { user, ...(team && { team }) };
  const open = useQuery(someJobsQuery({ ...of, state: "active" }, MOST_OPEN));
  // The API goes by when it was submitted; a long one may have failed yesterday.
  const since = new Date(yesterday(hour) - 13 * 86_400_000).toISOString();
  const failed = useQuery(someJobsQuery({ ...of, state: "failed", since }, 100));
  const jobs = open.data?.jobs ?? NO_JOBS;
  const running = useMemo(() => jobs.filter((j) => RUNS.has(j.state)), [jobs]);
  const waiting = useMemo(
    () => jobs.filter((j) => j.state === "pending").sort((a, b) => start(a) - start(b)),
    [jobs],
  );
  return { open, failed, jobs, running, waiting };
}

const RUNS = new Set(["running", "starting", "stopping"]);
const start = (j: Job) => (j.eta ? Date.parse(j.eta) : Number.MAX_SAFE_INTEGER);

/** Figures of running jobs: how busy their GPUs are, and since when they do nothing. */
export function useBusy(jobs: readonly Job[]): ReadonlyMap<string, Busy> {
  const asked = jobs
    .filter((j) => j.state === "running" && j.gpus_milli > 0)
    .slice(0, MOST_FIGURES);
  return useQueries({
    queries: asked.map((j) => ({
      ...jobFiguresQuery(j.id),
      refetchInterval: 30_000,
      retry: false as const,
    })),
    combine: (all) => {
      const out = new Map<string, Busy>();
      all.forEach((q, i) => {
        const job = asked[i] as Job;
        if (q.data) out.set(job.id, busyOf(q.data));
      });
      return out;
    },
  });
}

export interface Busy {
  /** Percent, the mean over its GPUs. */
  values: (number | null)[];
  last: number | undefined;
  idleMs: number;
}

const MOST_POINTS = 60;

export function busyOf(figures: JobFigures): Busy {
  const idleMs = figures.summary.idle_at_end_ms;
  const lines = figures.tasks.flatMap((t) =>
    t.gpus.flatMap((g) => {
      const line = g.figures.find((f) => f.figure === "utilization");
      return line ? [line.values.slice(-MOST_POINTS)] : [];
    }),
  );
  const n = Math.max(0, ...lines.map((l) => l.length));
  const values: (number | null)[] = [];
  for (let i = 0; i < n; i += 1) {
    // Their ends are now; some began later.
    const at = lines
      .map((l) => l[l.length - n + i])
      .filter((v): v is number => typeof v === "number");
    values.push(at.length === 0 ? null : at.reduce((a, b) => a + b, 0) / at.length / 10);
  }
  return { values, last: lastOf(values), idleMs };
}

function lastOf(values: readonly (number | null)[]): number | undefined {
  return values.findLast((v): v is number => v !== null);
}

export function idleOf(jobs: readonly Job[], busy: ReadonlyMap<string, Busy>): Idle[] {
  return jobs.flatMap((job) => {
    const b = busy.get(job.id);
    return b && b.idleMs > 0 ? [{ job, idleMs: b.idleMs }] : [];
  });
}

export function useBudgets(): Budget[] {
  return useQuery({ ...budgetsQuery, retry: false }).data ?? NO_BUDGETS;
}

/** When a budget will be spent: null where it lasts, undefined while that is not known. */
export function useRunsOut(queue: string): string | null | undefined {
  const found = useQuery({ ...forecastQuery(queue), retry: false }).data;
  return found && (found.runs_out_at ?? null);
}

export interface Spent {
  micros: number;
  gpu_ms: number;
}

/** What one spent, today and this week. */
export function useSpent(user: string, team: string | undefined) {
  const hour = useHour();
  const ask = (from: number) =>
    costQuery({ by: "user", user, from: new Date(from).toISOString(), ...(team && { team }) });
  const day = useQuery({ ...ask(today(hour)), retry: false });
  const week = useQuery({ ...ask(thisWeek(hour)), retry: false });
  return {
    day: day.data && sum(day.data),
    week: week.data && sum(week.data),
    error: day.error ?? week.error,
  };
}

export function sum(report: CostReport): Spent {
  return {
    micros: report.total_micros,
    gpu_ms: report.rows.reduce((n, r) => n + (r.gpu_ms ?? 0), 0),
  };
}
