// Parts of a whole, side by side or piled up over time. Pure.

import { niceTicks } from "../common/scale";

export interface Part {
  key: string;
  label: string;
  value: number;
  tone?: number | undefined;
  /** Waste and the like: hatched. */
  hatched?: boolean | undefined;
}

export interface PlacedPart {
  part: Part;
  index: number;
  x: number;
  width: number;
}

/** Parts of nought take no room; every other gets at least `least`. */
export function placeParts(
  parts: readonly Part[],
  total: number,
  width: number,
  least: number,
): PlacedPart[] {
  const sum =
    Math.max(
      total,
      parts.reduce((s, p) => s + Math.max(0, p.value), 0),
    ) || 1;
  const out: PlacedPart[] = [];
  let missing = 0;
  let spare = 0;
  parts.forEach((part, index) => {
    if (!(part.value > 0)) return;
    const wide = (part.value / sum) * width;
    if (wide < least) missing += least - wide;
    else spare += wide - least;
    out.push({ part, index, x: 0, width: wide });
  });
  const scale = spare > 0 ? Math.max(0, 1 - missing / spare) : 1;
  let x = 0;
  for (const p of out) {
    p.width = p.width < least ? least : least + (p.width - least) * scale;
    p.x = x;
    x += p.width;
  }
  return out;
}

export interface StackKey {
  key: string;
  label: string;
  tone?: number | undefined;
  hatched?: boolean | undefined;
  /** All the rest: without a hue of its own. */
  quiet?: boolean | undefined;
}

export interface StackPoint {
  at: number;
  /** In the order of the keys. */
  values: readonly number[];
}

export interface StackScale {
  ticks: number[];
  top: number;
}

export function stackScale(points: readonly StackPoint[]): StackScale {
  let most = 0;
  for (const point of points) {
    let sum = 0;
    for (const value of point.values) sum += Math.max(0, value);
    most = Math.max(most, sum);
  }
  const ticks = niceTicks(0, most > 0 ? most : 1, 5);
  return { ticks, top: ticks[ticks.length - 1] ?? 1 };
}

/** Which column and which part of it is under a point; -1 above the pile. */
export function hitStack(
  points: readonly StackPoint[],
  box: { x: number; y: number; w: number; h: number },
  top: number,
  x: number,
  y: number,
): { column: number; part: number } | null {
  if (x < box.x || x >= box.x + box.w || y < box.y || y > box.y + box.h) return null;
  const column = Math.floor(((x - box.x) / box.w) * points.length);
  const point = points[column];
  if (!point) return null;
  const value = ((box.y + box.h - y) / box.h) * top;
  let sum = 0;
  for (let part = 0; part < point.values.length; part++) {
    sum += Math.max(0, point.values[part] ?? 0);
    if (value <= sum) return { column, part };
  }
  return { column, part: -1 };
}
