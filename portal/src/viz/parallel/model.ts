// Parallel coordinates: axes, places, and which lines are within the brushed ranges. Pure.

import { type Axis, axisOf, extentOf, place } from "../xy/axis";

/** The input of an axis: numbers if all values are numbers, else texts. */
export interface Dimension {
  key: string;
  label: string;
  /** One value per line; undefined if missing. */
  values: readonly (number | string | undefined)[];
}

export interface ParallelAxis {
  key: string;
  label: string;
  axis: Axis;
  /** The texts in order; undefined for an axis of numbers. */
  texts: readonly string[] | undefined;
  /** The position of each line on the axis; NaN without a value. */
  at: Float64Array;
}

export type Ranges = Readonly<Record<string, readonly [number, number]>>;

/** The maximum number of texts on an axis. Further texts share the last position. */
export const MOST_TEXTS = 40;

export function parallelAxis(of: Dimension): ParallelAxis {
  const { key, label, values } = of;
  const given = values.filter((v) => v !== undefined);
  const numbers = given.every((v) => typeof v === "number");
  if (numbers) {
    const at = Float64Array.from(values, (v) => (typeof v === "number" ? v : Number.NaN));
    const extent = extentOf([at]);
    // A logarithmic axis, for example for learning rates.
    const log = extent !== undefined && extent[0] > 0 && extent[1] / extent[0] >= 100;
    return { key, label, axis: axisOf(extent, log, true), texts: undefined, at };
  }
  const all = [...new Set(given.map(String))].sort((a, b) =>
    a.localeCompare(b, "en", { numeric: true }),
  );
  const texts = all.length > MOST_TEXTS ? [...all.slice(0, MOST_TEXTS - 1), "other"] : all;
  const index = new Map(texts.map((text, i) => [text, i]));
  const at = Float64Array.from(values, (v) =>
    v === undefined ? Number.NaN : (index.get(String(v)) ?? texts.length - 1),
  );
  const axis = { from: 0, to: Math.max(1, texts.length - 1), log: false };
  return { key, label, axis, texts, at };
}

/** From 0 at the bottom to 1 at the top of an axis. A single text is in the middle. */
export function height(of: ParallelAxis, value: number): number {
  if (of.texts?.length === 1) return 0.5;
  return place(of.axis, value, 0, 1);
}

/** The lines within all ranges. A line without a value is outside. */
export function within(axes: readonly ParallelAxis[], ranges: Ranges, lines: number): Uint8Array {
  const out = new Uint8Array(lines).fill(1);
  for (const axis of axes) {
    const range = ranges[axis.key];
    if (!range) continue;
    const [low, high] = range;
    for (let i = 0; i < lines; i++) {
      const value = axis.at[i] as number;
      if (!(value >= low && value <= high)) out[i] = 0;
    }
  }
  return out;
}

/** Parses `metrics.loss~0.1~0.3` from the address. Ignores invalid ranges. */
export function readRanges(texts: readonly string[] | undefined): Ranges {
  const out: Record<string, readonly [number, number]> = {};
  for (const text of texts ?? []) {
    const [key, low, high] = text.split("~");
    const [a, b] = [Number(low), Number(high)];
    if (key && low && high && Number.isFinite(a) && Number.isFinite(b))
      out[key] = a <= b ? [a, b] : [b, a];
  }
  return out;
}

export function writeRanges(ranges: Ranges): string[] | undefined {
  const out = Object.entries(ranges).map(
    ([key, [low, high]]) => `${key}~${short(low)}~${short(high)}`,
  );
  return out.length > 0 ? out : undefined;
}

function short(value: number): string {
  return String(Number(value.toPrecision(9)));
}
