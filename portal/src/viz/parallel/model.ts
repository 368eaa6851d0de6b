// Parallel coordinates: axes, places, and which lines are within the brushed ranges. Pure.

import { type Axis, axisOf, extentOf, place } from "../xy/axis";

/** What an axis is made from: numbers where all values are, else texts. */
export interface Dimension {
  key: string;
  label: string;
  /** One value per line; undefined where a line has none. */
  values: readonly (number | string | undefined)[];
}

export interface ParallelAxis {
  key: string;
  label: string;
  axis: Axis;
  /** The texts in their order; undefined where the axis has numbers. */
  texts: readonly string[] | undefined;
  /** The place of each line on the axis, as a number; NaN where there is none. */
  at: Float64Array;
}

export type Ranges = Readonly<Record<string, readonly [number, number]>>;

/** Beyond so many texts an axis is too crowded to be read; the others share the last place. */
export const MOST_TEXTS = 40;

export function parallelAxis(of: Dimension): ParallelAxis {
  const { key, label, values } = of;
  const given = values.filter((v) => v !== undefined);
  const numbers = given.every((v) => typeof v === "number");
  if (numbers) {
    const at = Float64Array.from(values, (v) => (typeof v === "number" ? v : Number.NaN));
    const extent = extentOf([at]);
    // Learning rates and the like: their steps are factors.
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

/** From 0 at the foot to 1 at the head of an axis. A text that is alone stands in the middle. */
export function height(of: ParallelAxis, value: number): number {
  if (of.texts?.length === 1) return 0.5;
  return place(of.axis, value, 0, 1);
}

/** Which lines are within all ranges. A line without a value is in no range. */
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

/** `metrics.loss~0.1~0.3`, as an address has it. What makes no sense is dropped. */
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
