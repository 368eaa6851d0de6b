// From what a page has to what uPlot draws. Pure.

export type Values = readonly (number | null)[];

export interface LineSeries {
  key: string;
  label: string;
  values: Values;
  /** Which of the eight hues, from 0; the position where left out. */
  tone?: number | undefined;
  /** From this moment on the line is dashed: a forecast. */
  dashedFrom?: number | undefined;
}

export interface BandSeries {
  key: string;
  label: string;
  low: Values;
  high: Values;
  tone?: number | undefined;
}

/** Moments with nothing after more than one and a half steps get a gap; four, where the step is a guess. */
export function withGaps(
  times: readonly number[],
  columns: readonly Values[],
  step: number | undefined,
): { times: number[]; columns: (number | null)[][] } {
  const most = step ? step * 1.5 : usual(times) * 4;
  const fill = step ?? usual(times);
  const outTimes: number[] = [];
  const outColumns: (number | null)[][] = columns.map(() => []);
  for (let i = 0; i < times.length; i++) {
    const at = times[i] as number;
    const before = times[i - 1];
    if (before !== undefined && at - before > most) {
      outTimes.push(before + fill);
      for (const column of outColumns) column.push(null);
    }
    outTimes.push(at);
    columns.forEach((column, c) => {
      outColumns[c]?.push(column[i] ?? null);
    });
  }
  return { times: outTimes, columns: outColumns };
}

/** The usual distance of two moments; infinite where there are too few to tell. */
export function usual(times: readonly number[]): number {
  if (times.length < 4) return Number.POSITIVE_INFINITY;
  const steps = times.slice(1).map((t, i) => t - (times[i] as number));
  steps.sort((a, b) => a - b);
  return steps[steps.length >> 1] as number;
}

/** The measured part of a line and its continuation; they share the point where they meet. */
export function splitForecast(
  times: readonly number[],
  values: Values,
  from: number,
): { solid: (number | null)[]; dashed: (number | null)[] } {
  const first = times.findIndex((t) => t >= from);
  const meet = first === -1 ? times.length : first;
  const solid = values.map((v, i) => (i < meet || times[i] === from ? v : null));
  const dashed = values.map((v, i) => (i >= meet ? v : null));
  if (meet > 0 && times[meet] !== from && meet < times.length) {
    dashed[meet - 1] = values[meet - 1] ?? null;
  }
  return { solid, dashed };
}

export function extent(columns: readonly Values[]): [number, number] | null {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const column of columns) {
    for (const value of column) {
      if (value === null || !Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

/** The last measured value, which is where a label stands. */
export function lastValue(values: Values): { index: number; value: number } | null {
  for (let i = values.length - 1; i >= 0; i--) {
    const value = values[i];
    if (value !== null && value !== undefined) return { index: i, value };
  }
  return null;
}

/** `most` rows spread evenly over all, first and last among them. */
export function sample(count: number, most: number): number[] {
  if (count <= most) return Array.from({ length: count }, (_, i) => i);
  return Array.from({ length: most }, (_, i) => Math.round((i * (count - 1)) / (most - 1)));
}
