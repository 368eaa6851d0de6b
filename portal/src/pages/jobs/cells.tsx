import type { ReactNode } from "react";
import type { Job } from "@/api/types";
import { None, Time, Tooltip } from "@/design";
import { absolute, clock, percent } from "@/lib/format";
import { Sparkline } from "@/viz/sparkline/Sparkline";

export function ran(job: Job): boolean {
  return Boolean(job.started) && job.state !== "pending";
}

/** From when to when: its run, or its wait. */
export function lasting(job: Job): [string, string | null] {
  return [ran(job) ? (job.started ?? job.submitted) : job.submitted, job.ended ?? null];
}

export function Muted({ children }: { children: ReactNode }) {
  return <span className="text-muted tabular-nums">{children}</span>;
}

export function lastUse(job: Job): number | undefined {
  const last = job.utilization?.findLast((v) => v !== null);
  return last == null ? undefined : last / 10;
}

export function Use({ job }: { job: Job }) {
  const last = lastUse(job);
  if (last === undefined || !job.utilization) return <None />;
  return (
    <span className="flex items-center gap-1">
      <Sparkline
        values={job.utilization}
        max={1000}
        width={36}
        height={16}
        label={`GPU utilization in the last 30 minutes, now ${percent(last)}`}
      />
      <span className="w-9 text-right tabular-nums">{percent(last)}</span>
    </span>
  );
}

export function Start({ job }: { job: Job }) {
  if (job.state !== "pending") {
    if (!job.started) return <None />;
    return (
      <Muted>
        <Time at={job.started} as="clock" />
      </Muted>
    );
  }
  if (!job.eta) return <None />;
  const early = hour(job.eta);
  const late = job.eta_p90 ? beside(early, hour(job.eta_p90)) : "";
  const words = `Starts about ${absolute(job.eta)}${job.eta_p90 ? `; 90\u00a0% chance by ${absolute(job.eta_p90)}` : ""}`;
  return (
    <Tooltip text={words}>
      <span className="tabular-nums">
        <span className="text-faint">~</span>
        {early}
        {late !== "" && <span className="text-faint">–{late}</span>}
      </span>
    </Tooltip>
  );
}

/** The later end of a span: the day is said once, and the same time not at all. */
function beside(early: string, late: string): string {
  if (late === early) return "";
  const [day, time] = late.split(" ");
  return time && early.startsWith(`${day} `) ? time : late;
}

/** Without the day where there can be no doubt. */
function hour(at: string): string {
  const text = clock(at);
  return Math.abs(Date.parse(at) - Date.now()) < 72_000_000 ? text.replace(/^\w{3} /, "") : text;
}
