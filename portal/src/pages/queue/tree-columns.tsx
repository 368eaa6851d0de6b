import type { ReactNode } from "react";
import { Bar, None, Tooltip } from "@/design";
import { cx } from "@/lib/cx";
import { count, gpus, money, percent, span } from "@/lib/format";
import type { Row } from "./tree";

interface Column {
  id: string;
  header: string;
  hint?: string;
  right?: boolean;
  /** From which width of the page on it is there. */
  from?: "md" | "lg" | "xl";
  cell: (row: Row) => ReactNode;
}

const number = (n: number) => gpus(Math.round(n * 10) * 100);

export const COLUMNS: readonly Column[] = [
  {
    id: "used",
    header: "Used GPUs",
    hint: "GPUs in use, and promised",
    right: true,
    cell: (r) =>
      r.quota > 0 ? (
        <>
          {number(r.used)}
          <span className="text-faint"> of {number(r.quota)}</span>
        </>
      ) : (
        <Tooltip text="The queue has no quota of its own. It uses GPUs that others leave free.">
          <span>
            {number(r.used)}
            <span className="text-faint">, no quota</span>
          </span>
        </Tooltip>
      ),
  },
  {
    id: "fair",
    header: "Fair share",
    hint: "What it is entitled to now",
    right: true,
    from: "md",
    cell: (r) => number(r.fair),
  },
  {
    id: "demand",
    header: "Demand",
    hint: "Used, and asked for by those who wait",
    right: true,
    from: "lg",
    cell: (r) => number(r.demand),
  },
  {
    id: "waiting",
    header: "In line",
    hint: "Jobs that wait for GPUs. Those that wait for a time, another job or their array are not in line yet",
    right: true,
    cell: (r) => (r.waiting > 0 ? count(r.waiting) : <None />),
  },
  {
    id: "wait",
    header: "Median wait",
    hint: "Half of those that started in the last day waited less",
    right: true,
    from: "lg",
    cell: (r) =>
      r.wait_p50_ms === undefined ? (
        <None />
      ) : (
        <Tooltip
          text={
            r.wait_p90_ms === undefined ? undefined : `90 % waited less than ${span(r.wait_p90_ms)}`
          }
        >
          <span>{span(r.wait_p50_ms)}</span>
        </Tooltip>
      ),
  },
  {
    id: "weight",
    header: "Weight",
    hint: "Its part of what is left over",
    right: true,
    from: "xl",
    cell: (r) => gpus(r.weight * 1000),
  },
  {
    id: "credits",
    header: "Credits",
    hint: "GPU time in its bank: earned with quota that was not used",
    right: true,
    from: "xl",
    cell: (r) => (r.credits_gpu_s >= 1 ? <Credits seconds={r.credits_gpu_s} /> : <None />),
  },
  { id: "budget", header: "Budget used", from: "lg", cell: (r) => <BudgetState row={r} /> },
];

function Credits({ seconds }: { seconds: number }) {
  const hours = seconds / 3600;
  return (
    <>
      {hours >= 1
        ? gpus(hours >= 100 ? Math.round(hours) * 1000 : Math.round(hours * 10) * 100)
        : gpus(Math.round(seconds / 60) * 1000)}
      <span className="text-faint">{hours >= 1 ? " GPU-h" : " GPU-m"}</span>
    </>
  );
}

const ACTION: Record<string, string> = {
  notify: "then: notifies the team",
  block: "then: no new starts",
  lower_priority: "then: after all others",
  pause: "then: saved and paused",
};

function BudgetState({ row }: { row: Row }) {
  const b = row.budget;
  if (!b) return <None />;
  const part = b.limit_micros > 0 ? (b.spent_micros / b.limit_micros) * 100 : 100;
  const over = part >= 100;
  const near = !over && part >= Math.min(80, ...b.thresholds_milli.map((t) => t / 10));
  const label = `${money(b.spent_micros)} of ${money(b.limit_micros)} a ${b.per}; ${ACTION[b.action] ?? b.action}`;
  return (
    <Tooltip text={label}>
      <span className="flex items-center gap-2">
        <span className="w-12 shrink-0">
          <Bar
            height={6}
            label={label}
            whole={100}
            parts={[
              { value: Math.min(100, part), label, tone: over ? "bad" : near ? "warn" : "accent" },
            ]}
          />
        </span>
        <span className={cx("truncate", over && "font-medium text-bad", near && "text-warn")}>
          {percent(part)}
        </span>
      </span>
    </Tooltip>
  );
}
