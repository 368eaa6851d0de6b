// Orders the nodes of columns to reduce crossings.

export type Columns = string[][];
/** The neighbours of a node in the previous or next column. */
export type Beside = ReadonlyMap<string, readonly string[]>;

const SWEEPS = 12;

/** Orders each column by its neighbours, in both directions, and keeps the best result. */
export function ordered(columns: Columns, left: Beside, right: Beside): Columns {
  let now = columns.map((column) => [...column]);
  let best = now;
  let least = crossings(now, right);
  for (let sweep = 0; sweep < SWEEPS && least > 0; sweep += 1) {
    const next = now.map((column) => [...column]);
    if (sweep % 2 === 0)
      for (let i = 1; i < next.length; i += 1) next[i] = byNeighbours(next[i], next[i - 1], left);
    else
      for (let i = next.length - 2; i >= 0; i -= 1)
        next[i] = byNeighbours(next[i], next[i + 1], right);
    const found = crossings(next, right);
    if (found < least) {
      best = next;
      least = found;
    }
    now = next;
  }
  return best;
}

/** By the mean of its neighbours; a node without neighbours keeps its place. */
function byNeighbours(
  column: readonly string[] = [],
  fixed: readonly string[] = [],
  beside: Beside,
): string[] {
  const place = new Map(fixed.map((id, i) => [id, i]));
  const keys = column.map((id, i) => {
    const found = (beside.get(id) ?? []).flatMap((n) => place.get(n) ?? []);
    const middle = found.reduce((sum, n) => sum + n, 0) / found.length;
    // Its position, scaled to the other column.
    return found.length > 0 ? middle : (i / Math.max(1, column.length)) * fixed.length;
  });
  return column
    .map((id, i) => ({ id, i, key: keys[i] as number }))
    .sort((a, b) => a.key - b.key || a.i - b.i)
    .map((one) => one.id);
}

/** The number of crossings between adjacent columns. */
export function crossings(columns: Columns, right: Beside): number {
  let sum = 0;
  for (let i = 0; i + 1 < columns.length; i += 1) {
    const place = new Map((columns[i + 1] ?? []).map((id, at) => [id, at]));
    const ends = (columns[i] ?? []).flatMap((id) =>
      (right.get(id) ?? []).flatMap((to) => place.get(to) ?? []).sort((a, b) => a - b),
    );
    sum += inversions(ends);
  }
  return sum;
}

/** The number of inversions. */
function inversions(list: number[]): number {
  if (list.length < 2) return 0;
  const half = list.length >> 1;
  const a = list.slice(0, half);
  const b = list.slice(half);
  let sum = inversions(a) + inversions(b);
  let i = 0;
  let j = 0;
  for (let k = 0; k < list.length; k += 1) {
    const x = a[i];
    const y = b[j];
    if (y === undefined || (x !== undefined && x <= y)) {
      list[k] = x as number;
      i += 1;
    } else {
      list[k] = y;
      sum += a.length - i;
      j += 1;
    }
  }
  return sum;
}
