// Axes of plain numbers, linear or logarithmic. Pure.

import { lowerBound, niceTicks } from "../common/scale";

export interface Axis {
  from: number;
  to: number;
  log: boolean;
}

/** The position of a value in pixels; NaN for values up to zero on a logarithmic axis. */
export function place(axis: Axis, value: number, start: number, end: number): number {
  if (axis.log) {
    if (!(value > 0)) return Number.NaN;
    const from = Math.log10(axis.from);
    const span = Math.log10(axis.to) - from || 1;
    return start + ((Math.log10(value) - from) / span) * (end - start);
  }
  return start + ((value - axis.from) / (axis.to - axis.from || 1)) * (end - start);
}

export function valueAt(axis: Axis, pixel: number, start: number, end: number): number {
  const part = (pixel - start) / (end - start || 1);
  if (!axis.log) return axis.from + part * (axis.to - axis.from);
  const from = Math.log10(axis.from);
  return 10 ** (from + part * (Math.log10(axis.to) - from));
}

/** The minimum and maximum finite value; on a logarithmic axis, of the positive values. */
export function extentOf(columns: readonly ArrayLike<number>[], log = false) {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const column of columns)
    for (let i = 0; i < column.length; i++) {
      const value = column[i] as number;
      if (!Number.isFinite(value) || Math.abs(value) > 1e300 || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  return low <= high ? ([low, high] as const) : undefined;
}

/** An axis around values. A `tight` axis ends at the values, others at round numbers. */
export function axisOf(
  extent: readonly [number, number] | undefined,
  log: boolean,
  tight = false,
): Axis {
  if (!extent) return log ? { from: 1, to: 10, log } : { from: 0, to: 1, log };
  let [from, to] = extent;
  if (log) {
    if (from === to) return { from: from / 2, to: to * 2, log };
    if (tight) return { from, to, log };
    const room = (to / from) ** 0.04;
    return { from: from / room, to: to * room, log };
  }
  if (from === to) {
    const room = Math.abs(from) * 0.1 || 1;
    from -= room;
    to += room;
  }
  if (tight) return { from, to, log };
  const ticks = niceTicks(from, to, 6);
  return { from: ticks[0] ?? from, to: ticks.at(-1) ?? to, log };
}

/** Round values on an axis: at most about `most`. */
export function ticksOf(axis: Axis, most: number): number[] {
  const inside = (v: number) => v >= axis.from * (1 - 1e-9) && v <= axis.to * (1 + 1e-9);
  if (!axis.log) {
    const slack = (axis.to - axis.from) * 1e-9;
    return niceTicks(axis.from, axis.to, Math.max(2, most)).filter(
      (v) => v >= axis.from - slack && v <= axis.to + slack,
    );
  }
  const low = Math.floor(Math.log10(axis.from));
  const high = Math.ceil(Math.log10(axis.to));
  const every = Math.max(1, Math.ceil((high - low) / Math.max(1, most)));
  const powers: number[] = [];
  for (let p = low; p <= high; p += every) powers.push(10 ** p);
  const shown = powers.filter(inside);
  if (shown.length >= 3) return shown;
  const fine = powers.flatMap((p) => [1, 2, 5].map((f) => f * p)).filter(inside);
  if (fine.length >= 2) return fine;
  return niceTicks(axis.from, axis.to, Math.max(2, most)).filter((v) => v > 0 && inside(v));
}

export interface Line {
  x: readonly number[];
  y: readonly number[];
}

/** The point nearest to a position in pixels, within `reach`. The x values of each line must ascend. */
export function nearestPoint(
  lines: readonly Line[],
  at: { x: number; y: number },
  px: (value: number) => number,
  py: (value: number) => number,
  value: number,
  reach = 40,
): { line: number; point: number } | undefined {
  let best: { line: number; point: number } | undefined;
  let least = reach * reach;
  lines.forEach((line, l) => {
    const middle = lowerBound(line.x, value);
    for (let i = Math.max(0, middle - 3); i < Math.min(line.x.length, middle + 3); i++) {
      const dx = px(line.x[i] as number) - at.x;
      const dy = py(line.y[i] as number) - at.y;
      const far = dx * dx + dy * dy;
      if (far < least) {
        least = far;
        best = { line: l, point: i };
      }
    }
  });
  return best;
}
