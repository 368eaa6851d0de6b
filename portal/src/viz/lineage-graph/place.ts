// Vertical positions: near the neighbours, in order, and without overlap.

export interface Item {
  /** The preferred middle. */
  wish: number;
  /** Its height with the gap below it. */
  room: number;
  /** The weight of the preference. */
  weight: number;
}

/**
 * The middles of a column from its top to its bottom. They keep their distance, and the sum of the
 * squared distances from their wishes is the least that there is (pool adjacent violators).
 */
export function spread(items: readonly Item[]): number[] {
  // After subtracting the heights above, the remaining positions only need to be monotonic.
  const offsets: number[] = [];
  let offset = 0;
  items.forEach((item, i) => {
    if (i > 0) offset += ((items[i - 1] as Item).room + item.room) / 2;
    offsets.push(offset);
  });
  const pools: { sum: number; weight: number; size: number }[] = [];
  items.forEach((item, i) => {
    let pool = {
      sum: (item.wish - (offsets[i] as number)) * item.weight,
      weight: item.weight,
      size: 1,
    };
    for (
      let last = pools.at(-1);
      last && last.sum / last.weight >= pool.sum / pool.weight;
      last = pools.at(-1)
    ) {
      pools.pop();
      pool = {
        sum: last.sum + pool.sum,
        weight: last.weight + pool.weight,
        size: last.size + pool.size,
      };
    }
    pools.push(pool);
  });
  const out: number[] = [];
  for (const pool of pools)
    for (let n = 0; n < pool.size; n += 1)
      out.push(pool.sum / pool.weight + (offsets[out.length] as number));
  return out;
}
