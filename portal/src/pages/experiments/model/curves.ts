// Turns the history of metrics into lines over steps, time or cost. Pure.

import { type MetricPoint, metricNumber } from "@/api/tracking";
import type { XAxis } from "../search";
import type { Row } from "./row";

export interface Curve {
  run: string;
  label: string;
  x: number[];
  y: number[];
}

/** The source of a cost: the history of the cost, or an estimate from the time of the run. */
export type CostKnown = "history" | "linear" | "none";

export interface CostOf {
  known: CostKnown;
  at: (timestamp: number) => number;
}

/**
 * What a run had cost at a moment. Its metric `berth.cost` has one point for each time Berth wrote it;
 * with less than two the cost grows evenly from the start of the run to its end.
 */
export function costOf(row: Row, history: readonly MetricPoint[], now: number): CostOf {
  const total = row.metrics["berth.cost"];
  if (total === undefined || row.start === undefined)
    return { known: "none", at: () => Number.NaN };
  const start = row.start;
  const points = history
    .map((p) => ({ at: p.timestamp, cost: metricNumber(p.value) }))
    .filter((p) => p.at > start && Number.isFinite(p.cost))
    .sort((a, b) => a.at - b.at);
  const even = points.length < 2;
  const known = even ? [{ at: Math.max(row.end ?? now, start + 1), cost: total }] : points;
  return {
    known: even ? "linear" : "history",
    at: (timestamp) => {
      let before = { at: start, cost: 0 };
      for (const point of known) {
        if (timestamp <= point.at) {
          const part = (timestamp - before.at) / (point.at - before.at || 1);
          return before.cost + Math.max(0, part) * (point.cost - before.cost);
        }
        before = point;
      }
      return before.cost;
    },
  };
}

/** The points of each run in the chart. */
export function byRun(points: readonly MetricPoint[]): Map<string, MetricPoint[]> {
  const out = new Map<string, MetricPoint[]>();
  for (const point of points) {
    const id = point.run_id ?? "";
    const list = out.get(id);
    if (list) list.push(point);
    else out.set(id, [point]);
  }
  return out;
}

/** Lines with ascending x. Omits runs without a value on the axis. */
export function curvesOf(
  rows: readonly Row[],
  points: readonly MetricPoint[],
  x: XAxis,
  costs: ReadonlyMap<string, CostOf>,
): Curve[] {
  const of = byRun(points);
  return rows.flatMap((row) => {
    const own = of.get(row.id) ?? [];
    const first = row.start ?? Math.min(...own.map((p) => p.timestamp));
    const cost = costs.get(row.id);
    const placed = own.flatMap((p) => {
      const at =
        x === "step"
          ? p.step
          : x === "time"
            ? Math.max(0, p.timestamp - first)
            : (cost?.at(p.timestamp) ?? Number.NaN);
      return Number.isFinite(at) ? [[at, metricNumber(p.value)] as const] : [];
    });
    if (placed.length === 0) return [];
    placed.sort((a, b) => a[0] - b[0]);
    return [
      { run: row.id, label: row.name, x: placed.map((p) => p[0]), y: placed.map((p) => p[1]) },
    ];
  });
}

/** The maximum number of points of each run. Charts of many runs have fewer, to stay fast. */
export function samplesFor(runs: number): number {
  return Math.max(100, Math.min(2500, Math.floor(50_000 / Math.max(1, runs))));
}

/** The title of the axis. It marks an estimate. */
export function axisTitle(x: XAxis, costs: Iterable<CostOf>): string {
  if (x === "step") return "Step";
  if (x === "time") return "Time since the start of the run";
  const known = new Set([...costs].map((c) => c.known));
  if (!known.has("linear")) return "Cost";
  return known.has("history")
    ? "Cost (of some runs estimated: evenly over their GPU-hours)"
    : "Cost (estimated: evenly over the run's GPU-hours)";
}
