// Smoothing of noisy curves. Pure.

/**
 * An exponential mean: `weight` 0 changes nothing, 0.99 follows slowly. The first values are not drawn
 * towards zero. Where a value is missing or infinite the mean goes on with the next one.
 */
export function smooth(values: readonly number[], weight: number): number[] {
  if (!(weight > 0)) return [...values];
  const w = Math.min(weight, 0.999);
  let mean = 0;
  let part = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    mean = mean * w + (1 - w) * value;
    part = part * w + (1 - w);
    return mean / part;
  });
}
