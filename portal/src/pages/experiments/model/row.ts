// A run as tables and charts need it, and the keys of its values. Pure.

import { metricNumber, type RunStatus, record, type TrackedRun } from "@/api/tracking";
import { money, NONE, percent } from "@/lib/format";

export interface Row {
  id: string;
  name: string;
  user: string;
  status: RunStatus;
  deleted: boolean;
  start: number | undefined;
  end: number | undefined;
  params: Readonly<Record<string, string>>;
  /** The newest value of each metric. */
  metrics: Readonly<Record<string, number>>;
  tags: Readonly<Record<string, string>>;
}

export function rowOf(run: TrackedRun): Row {
  return {
    id: run.info.run_id,
    name: run.info.run_name,
    user: run.info.user_id,
    status: run.info.status,
    deleted: run.info.lifecycle_stage === "deleted",
    start: run.info.start_time,
    end: run.info.end_time,
    params: record(run.data.params),
    metrics: Object.fromEntries(run.data.metrics.map((m) => [m.key, metricNumber(m.value)])),
    tags: record(run.data.tags),
  };
}

export const COST = "metrics.berth.cost";
export const GPU_HOURS = "metrics.berth.gpu_hours";

export type Kind = "metrics" | "params" | "tags" | "attributes";

/** `metrics.berth.cost` is the metric `berth.cost`. A key without a known prefix is an attribute. */
export function split(key: string): { kind: Kind; name: string } {
  const at = key.indexOf(".");
  const kind = key.slice(0, at);
  return kind === "metrics" || kind === "params" || kind === "tags"
    ? { kind, name: key.slice(at + 1) }
    : { kind: "attributes", name: key };
}

const LABELS: Record<string, string> = {
  [COST]: "Cost",
  [GPU_HOURS]: "GPU-hours",
  "metrics.berth.energy_kwh": "Energy",
  "metrics.berth.gpu_use": "GPU use",
  "tags.berth.job": "Job",
  name: "Run",
  id: "Run id",
  status: "Status",
  user: "User",
  start: "Started",
  duration: "Duration",
};

/** The title of a column or an axis. */
export function labelOf(key: string): string {
  return LABELS[key] ?? split(key).name;
}

export function textAt(row: Row, key: string): string | undefined {
  const { kind, name } = split(key);
  if (kind === "metrics") {
    const value = row.metrics[name];
    return value === undefined ? undefined : String(value);
  }
  if (kind !== "attributes") return row[kind][name];
  switch (name) {
    case "name":
    case "id":
    case "user":
    case "status":
      return row[name];
    default: {
      const value = numberAt(row, key);
      return value === undefined ? undefined : String(value);
    }
  }
}

/** The value as a number, also of a param, which is a text. */
export function numberAt(row: Row, key: string, now = Date.now()): number | undefined {
  const { kind, name } = split(key);
  switch (kind) {
    case "metrics":
      return row.metrics[name];
    case "attributes":
      if (name === "start") return row.start;
      if (name !== "duration" || row.start === undefined) return undefined;
      return Math.max(0, (row.end ?? now) - row.start);
    default:
      return numeric(row[kind][name]);
  }
}

/** `1e-4` and `0.1` are numbers, `` and `adam` are not. */
export function numeric(text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const value = Number(text);
  return Number.isNaN(value) ? undefined : value;
}

/** Five significant digits, with an exponent for very large and small numbers. */
export function figure(value: number | undefined): string {
  if (value === undefined) return NONE;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const abs = Math.abs(value);
  const text =
    abs !== 0 && (abs < 1e-4 || abs >= 1e7)
      ? value
          .toExponential(3)
          .replace(/\.?0+e/, "e")
          .replace("e+", "e")
      : String(Number(value.toPrecision(abs >= 1e5 ? 7 : 5)));
  return text.replace(/-/g, "−");
}

/** The value of a metric with its unit: costs are money, shares are percentages. */
export function metricText(name: string, value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return figure(value);
  if (name === "berth.cost") return money(value * 1e6);
  if (name === "berth.gpu_use") return percent(value * 100);
  if (name === "berth.energy_kwh") return `${figure(value)}\u00a0kWh`;
  if (name === "berth.gpu_hours") return `${figure(value)}\u00a0h`;
  return figure(value);
}

/** A shorter form for the labels of an axis. */
export function axisText(key: string, value: number): string {
  if (key === COST) return money(value * 1e6, { short: true });
  if (key === "duration") return `${figure(value / 60_000)} min`;
  const { kind, name } = split(key);
  return kind === "metrics" ? metricText(name, value) : figure(value);
}

/** The names of all runs in alphabetical order. Names that Berth writes come last. */
export interface Names {
  metrics: string[];
  params: string[];
  tags: string[];
}

export function namesOf(rows: readonly Row[]): Names {
  const found = { metrics: new Set<string>(), params: new Set<string>(), tags: new Set<string>() };
  for (const row of rows)
    for (const kind of ["metrics", "params", "tags"] as const)
      for (const name in row[kind]) found[kind].add(name);
  const own = (name: string) => (/^(berth|mlflow|system)[./]/.test(name) ? 1 : 0);
  const inOrder = (names: Set<string>) =>
    [...names].sort((a, b) => own(a) - own(b) || a.localeCompare(b, "en", { numeric: true }));
  return {
    metrics: inOrder(found.metrics),
    params: inOrder(found.params),
    tags: inOrder(found.tags),
  };
}

/** The default columns: params that differ, the first metrics, and the cost. */
export function usualColumns(rows: readonly Row[]): string[] {
  const names = namesOf(rows);
  const plain = (name: string) => !/^(berth|mlflow|system)[./]/.test(name);
  const differs = (name: string) => rows.some((r) => r.params[name] !== rows[0]?.params[name]);
  const params = names.params.filter(differs).slice(0, 4);
  const metrics = names.metrics.filter(plain).slice(0, 5);
  return [
    "status",
    "user",
    "start",
    "duration",
    ...params.map((p) => `params.${p}`),
    ...metrics.map((m) => `metrics.${m}`),
    COST,
    GPU_HOURS,
  ];
}

/** Sorts rows as the server does: in both directions NaN comes after the numbers, and missing values last. */
export function sortRows(rows: readonly Row[], sort: string | undefined, now: number): Row[] {
  if (!sort) return [...rows];
  const desc = sort.startsWith("-");
  const key = desc ? sort.slice(1) : sort;
  const { kind, name } = split(key);
  const sign = desc ? -1 : 1;
  const asNumber = kind === "metrics" || name === "start" || name === "duration";
  const values = new Map<Row, number | string | undefined>();
  for (const row of rows) values.set(row, asNumber ? numberAt(row, key, now) : textAt(row, key));
  const rank = (value: number | string | undefined) =>
    value === undefined ? 2 : typeof value === "number" && Number.isNaN(value) ? 1 : 0;
  return [...rows].sort((a, b) => {
    const x = values.get(a);
    const y = values.get(b);
    const gap = rank(x) - rank(y);
    if (gap !== 0 || rank(x) !== 0) return gap;
    if (typeof x === "number" && typeof y === "number") return sign * (x - y);
    const [p, q] = [numeric(String(x)), numeric(String(y))];
    if (p !== undefined && q !== undefined) return sign * (p - q);
    return sign * String(x).localeCompare(String(y), "en", { numeric: true });
  });
}

const WORDS: Record<RunStatus, { state: string; word: string }> = {
  RUNNING: { state: "running", word: "Running" },
  SCHEDULED: { state: "pending", word: "Scheduled" },
  FINISHED: { state: "done", word: "Finished" },
  FAILED: { state: "failed", word: "Failed" },
  KILLED: { state: "cancelled", word: "Killed" },
};

/** The state whose colour and glyph a status has, and its word in MLflow. */
export function statusOf(status: RunStatus): { state: string; word: string } {
  return WORDS[status] ?? { state: status, word: status };
}
