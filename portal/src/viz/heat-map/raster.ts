// GPUs by time as pixels: one for each value, through a table of colours. Pure.

export const FLAG_IDLE = 1;
export const FLAG_DOWN = 2;

export interface Raster {
  rows: number;
  columns: number;
  /** Row by row; NaN is no data. */
  values: Float32Array;
  /** FLAG_IDLE and FLAG_DOWN for each value; all nought where left out. */
  flags?: Uint8Array | undefined;
}

/** Turns values into pixels. Those without data stay clear, so that a hatching behind shows; says if there are any. */
export function rasterize(
  raster: Raster,
  palette: Uint32Array,
  min: number,
  max: number,
  down: number,
  out: Uint32Array,
): boolean {
  const { values, flags } = raster;
  const count = raster.rows * raster.columns;
  let gaps = false;
  const last = palette.length - 1;
  const factor = palette.length / (max - min || 1);
  for (let i = 0; i < count; i++) {
    const value = values[i] as number;
    // NaN is the only value that does not equal itself; the check is in the hot loop.
    // biome-ignore lint/suspicious/noSelfCompare: it is how NaN is told
    if (value !== value) {
      out[i] = 0;
      gaps = true;
      continue;
    }
    let step = ((value - min) * factor) | 0;
    if (step < 0) step = 0;
    else if (step > last) step = last;
    out[i] = palette[step] as number;
  }
  if (!flags) return gaps;
  for (let i = 0; i < count; i++) {
    if (((flags[i] as number) & FLAG_DOWN) !== 0) out[i] = down;
  }
  return gaps;
}

export interface Run {
  row: number;
  from: number;
  to: number;
}

/** Stretches of a flag in some rows: what is outlined or struck through is drawn once a stretch. */
export function runs(raster: Raster, flag: number, firstRow: number, lastRow: number): Run[] {
  const { flags, columns } = raster;
  const out: Run[] = [];
  if (!flags) return out;
  for (let row = firstRow; row < lastRow; row++) {
    let from = -1;
    for (let column = 0; column <= columns; column++) {
      const on = column < columns && ((flags[row * columns + column] as number) & flag) !== 0;
      if (on && from < 0) from = column;
      if (!on && from >= 0) {
        out.push({ row, from, to: column });
        from = -1;
      }
    }
  }
  return out;
}

/** Rows as tall as fits, from 2 to 18 pixels; what does not fit is scrolled. */
export function rowHeight(rows: number, room: number): number {
  return Math.min(18, Math.max(2, Math.floor(room / Math.max(1, rows))));
}

/** What the API has as rows of numbers or null, as a raster. */
export function rasterOf(
  rows: readonly { values: readonly (number | null)[] }[],
  columns: number,
  flags?: Uint8Array | undefined,
): Raster {
  const values = new Float32Array(rows.length * columns).fill(Number.NaN);
  rows.forEach((row, r) => {
    const count = Math.min(columns, row.values.length);
    for (let c = 0; c < count; c++) {
      const value = row.values[c];
      if (value !== null && value !== undefined) values[r * columns + c] = value;
    }
  });
  return { rows: rows.length, columns, values, flags };
}

/** Which marks a legend has to explain. */
export function marksOf(raster: Raster): ("idle" | "failed" | "unknown")[] {
  const { values, flags: given } = raster;
  let flags = 0;
  let missing = false;
  const count = raster.rows * raster.columns;
  for (let i = 0; i < count; i++) {
    const flag = given ? (given[i] as number) : 0;
    flags |= flag;
    const value = values[i] as number;
    // biome-ignore lint/suspicious/noSelfCompare: it is how NaN is told
    if (value !== value && (flag & FLAG_DOWN) === 0) missing = true;
  }
  const out: ("idle" | "failed" | "unknown")[] = [];
  if (flags & FLAG_IDLE) out.push("idle");
  if (flags & FLAG_DOWN) out.push("failed");
  if (missing) out.push("unknown");
  return out;
}
