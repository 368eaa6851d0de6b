// Compares two versions of a model. Pure.

import { type LoggedModel, type ModelVersion, metricNumber, type TrackedRun } from "@/api/tracking";
import { money } from "@/lib/format";
import { ownTags } from "../models/model";

export type What = "metric" | "param" | "tag";

/** The values of a version, by kind and key. */
export type Side = Readonly<Record<What, ReadonlyMap<string, string | number>>>;

/** Collects the values of the run and of the logged model, which has its own metrics and params. */
export function sideOf(version: ModelVersion, run?: TrackedRun, logged?: LoggedModel): Side {
  const metric = new Map<string, string | number>();
  for (const point of [...(run?.data.metrics ?? []), ...(logged?.data.metrics ?? [])])
    metric.set(point.key, metricNumber(point.value));
  const param = new Map<string, string | number>();
  for (const pair of [...(run?.data.params ?? []), ...(logged?.data.params ?? [])])
    param.set(pair.key, pair.value);
  const tag = new Map<string, string | number>(
    ownTags(version.tags).map((pair) => [pair.key, pair.value]),
  );
  return { metric, param, tag };
}

export interface Compared {
  id: string;
  what: What;
  key: string;
  before: string | number | undefined;
  after: string | number | undefined;
  differs: boolean;
  /** The difference of two numbers. */
  change: number | undefined;
}

const ORDER: readonly What[] = ["metric", "param", "tag"];

export function compared(before: Side, after: Side): Compared[] {
  return ORDER.flatMap((what) => {
    const keys = new Set([...before[what].keys(), ...after[what].keys()]);
    return [...keys].sort(byText).map((key) => {
      const a = before[what].get(key);
      const b = after[what].get(key);
      const numbers = typeof a === "number" && typeof b === "number";
      return {
        id: `${what} ${key}`,
        what,
        key,
        before: a,
        after: b,
        // `Object.is` treats NaN as equal to NaN.
        differs: !Object.is(a, b),
        change: numbers && !Number.isNaN(b - a) ? b - a : undefined,
      };
    });
  });
}

const byText = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });

/** The metrics that Berth logs have units. */
export function valueText(key: string, value: string | number | undefined): string | undefined {
  if (typeof value !== "number") return value;
  if (key === "berth.cost") return money(value * 1e6);
  return figure(value);
}

/** Six significant digits, without trailing zeros. */
export function figure(value: number): string {
  if (!Number.isFinite(value))
    return Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "−Infinity";
  const text =
    value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)
      ? value.toExponential(3)
      : Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 9 });
  return text.replace("-", "−");
}

/** `+0.02 (+4 %)`. Omits the percentage if the first value is zero. */
export function changeText(row: Compared): string | undefined {
  const { change, before, key } = row;
  if (change === undefined || change === 0) return undefined;
  const size = valueText(key, Math.abs(change));
  const sign = change > 0 ? "+" : "−";
  const share = typeof before === "number" && before !== 0 ? change / Math.abs(before) : undefined;
  const percent =
    share !== undefined && Number.isFinite(share) && Math.abs(share) < 10
      ? ` (${sign}${figure(Number((Math.abs(share) * 100).toPrecision(3)))}\u00a0%)`
      : "";
  return `${sign}${size}${percent}`;
}
