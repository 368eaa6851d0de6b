// Values to SVG paths. Pure.

export interface SparkBox {
  min: number;
  max?: number | undefined;
  width: number;
  height: number;
}

export interface SparkShape {
  line: string;
  area: string;
  end: { x: number; y: number } | null;
}

/** More values than pixels are drawn as the highest of each pixel: a peak must not vanish. */
export function thin(values: readonly (number | null)[], most: number): (number | null)[] {
  if (values.length <= most) return [...values];
  const out: (number | null)[] = [];
  for (let i = 0; i < most; i++) {
    const from = Math.floor((i * values.length) / most);
    const to = Math.max(from + 1, Math.floor(((i + 1) * values.length) / most));
    let best: number | null = null;
    for (let k = from; k < to; k++) {
      const value = values[k];
      if (value !== null && value !== undefined && (best === null || value > best)) best = value;
    }
    out.push(best);
  }
  return out;
}

export function sparkPath(all: readonly (number | null)[], box: SparkBox): SparkShape {
  const values = thin(all, Math.max(2, Math.floor(box.width)));
  let top = box.max ?? Number.NEGATIVE_INFINITY;
  if (box.max === undefined) {
    for (const value of values) if (value !== null && value > top) top = value;
  }
  if (!(top > box.min)) top = box.min + 1;
  const pad = 2;
  const x = (i: number) =>
    round(
      values.length < 2 ? box.width - pad : pad + (i / (values.length - 1)) * (box.width - 2 * pad),
    );
  const y = (v: number) => {
    const part = Math.min(Math.max((v - box.min) / (top - box.min), 0), 1);
    return round(box.height - 1.5 - part * (box.height - 3.5));
  };
  let line = "";
  let area = "";
  let end: SparkShape["end"] = null;
  let start = -1;
  for (let i = 0; i <= values.length; i++) {
    const value = values[i];
    const here = i < values.length && value !== null && value !== undefined;
    if (here) {
      line += start < 0 ? `M${x(i)} ${y(value)}` : `L${x(i)} ${y(value)}`;
      area += start < 0 ? `M${x(i)} ${box.height}L${x(i)} ${y(value)}` : `L${x(i)} ${y(value)}`;
      if (start < 0) start = i;
      if (i === values.length - 1) end = { x: x(i), y: y(value) };
    } else if (start >= 0) {
      // A value alone is a dot: a line of no length with round ends.
      if (start === i - 1) line += "h0";
      area += `L${x(i - 1)} ${box.height}Z`;
      start = -1;
    }
  }
  return { line, area, end };
}

function round(n: number): number {
  return Math.round(n * 10) / 10;
}
