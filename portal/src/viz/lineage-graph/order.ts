// In which order the nodes of a column stand, so that few links cross.

export type Columns = string[][];
/** The neighbours of a node in the column before it, or in the one after it. */
export type Beside = ReadonlyMap<string, readonly string[]>;

const SWEEPS = 12;

/** Orders each column by where its neighbours stand, to and fro, and keeps the best that it has seen. */
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

/** By the middle of its neighbours; a node without any keeps its place. */
function byNeighbours(
  column: readonly string[] = [],
  fixed: readonly string[] = [],
  beside: Beside,
): string[] {
  const place = new Map(fixed.map((id, i) => [id, i]));
  const keys = column.map((id, i) => {
    const found = (beside.get(id) ?? []).flatMap((n) => place.get(n) ?? []);
    const middle = found.reduce((sum, n) => sum + n, 0) / found.length;
    // Its place in this column, as a place in the other one.
    return found.length > 0 ? middle : (i / Math.max(1, column.length)) * fixed.length;
  });
  return column
    .map((id, i) => ({ id, i, key: keys[i] as number }))
    .sort((a, b) => a.key - b.key || a.i - b.i)
    .map((one) => one.id);
}

/** How many links cross between all columns and the ones after them. */
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

/** How many pairs stand the wrong way round. */
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
