// Rows that keep their place. Live data changes what a row says; which rows there are, and in which
// order, changes only when asked. Pure.

export interface Steady<T> {
  rows: readonly T[];
  /** Rows that there would be besides. */
  added: number;
  /** Rows that would no longer be here. */
  gone: number;
}

/**
 * `order` is what is on the screen, `next` what the server has now. Rows after the last one that is
 * known are pages that were loaded, and join at the end.
 */
export function steady<T>(
  order: readonly T[],
  next: readonly T[],
  id: (row: T) => string,
): Steady<T> {
  if (order.length === 0) return { rows: next, added: 0, gone: 0 };
  const known = new Set(order.map(id));
  const now = new Map(next.map((row) => [id(row), row]));
  let last = next.length - 1;
  while (last >= 0 && !known.has(id(next[last] as T))) last -= 1;
  const more = last < 0 ? [] : next.slice(last + 1);
  const rows = [...order.map((row) => now.get(id(row)) ?? row), ...more];
  const added = next.length - more.length - order.filter((row) => now.has(id(row))).length;
  const gone = order.filter((row) => !now.has(id(row))).length;
  return { rows: same(order, rows) ? order : rows, added, gone };
}

function same<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((row, i) => row === b[i]);
}

/** What the button says that brings the changes in. */
export function changes(added: number, gone: number): string | undefined {
  if (added === 0 && gone === 0) return undefined;
  if (gone === 0) return added === 1 ? "Show 1 new job" : `Show ${added} new jobs`;
  if (added === 0) return gone === 1 ? "1 no longer fits" : `${gone} no longer fit`;
  return `Show ${added} new, ${gone} no longer fit`;
}
