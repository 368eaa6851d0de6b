// A budget against time. Pure.

export interface SpentPoint {
  at: number;
  spent: number;
}

export interface ForecastPoint {
  at: number;
  p50: number;
  p90: number;
  /** The lower edge of the band; `p50` where left out. */
  p10?: number | undefined;
}

/** When a line of points first reaches a value; null where it never does. */
export function crossing(points: readonly { at: number; value: number }[], limit: number) {
  for (let i = 0; i < points.length; i++) {
    const here = points[i];
    if (!here || here.value < limit) continue;
    const before = points[i - 1];
    if (!before || here.value === before.value) return here.at;
    const part = (limit - before.value) / (here.value - before.value);
    return before.at + part * (here.at - before.at);
  }
  return null;
}

/** What was spent at a moment: between two points, on the line between them. */
export function spentAt(points: readonly SpentPoint[], at: number): number | null {
  const first = points[0];
  if (!first || at < first.at) return null;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (!a || !b || b.at < at) continue;
    return b.at === a.at ? b.spent : a.spent + ((at - a.at) / (b.at - a.at)) * (b.spent - a.spent);
  }
  return points[points.length - 1]?.spent ?? null;
}

export function path(points: readonly (readonly [number, number])[]): string {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}
