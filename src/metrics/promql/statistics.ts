/** Numbers about lists of numbers; NaN means "no value" and is left out. */

/** Sorted values without NaN, in a list of their own. */
export function sortedValues(values: ArrayLike<number>, from = 0, to = values.length): Float64Array {
  const out = new Float64Array(to - from);
  let n = 0;
  for (let i = from; i < to; i++) {
    const value = values[i] as number;
    if (!Number.isNaN(value)) out[n++] = value;
  }
  return out.subarray(0, n).sort();
}

export function quantileOfSorted(phi: number, sorted: ArrayLike<number>): number {
  const n = sorted.length;
  if (n === 0 || Number.isNaN(phi)) return Number.NaN;
  if (phi < 0) return Number.NEGATIVE_INFINITY;
  if (phi > 1) return Number.POSITIVE_INFINITY;
  const rank = phi * (n - 1);
  const low = Math.max(0, Math.floor(rank));
  const high = Math.min(n - 1, low + 1);
  const weight = rank - Math.floor(rank);
  return (sorted[low] as number) * (1 - weight) + (sorted[high] as number) * weight;
}

export function quantile(phi: number, values: ArrayLike<number>): number {
  return quantileOfSorted(phi, sortedValues(values));
}

/** Median absolute deviation. */
export function mad(values: ArrayLike<number>): number {
  const sorted = sortedValues(values);
  const median = quantileOfSorted(0.5, sorted);
  return quantileOfSorted(0.5, sorted.map((v) => Math.abs(v - median)).sort());
}

export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  let n = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) continue;
    sum += value;
    n++;
  }
  return sum / n;
}

export function variance(values: ArrayLike<number>, from = 0, to = values.length): number {
  return spread(values, from, to).variance;
}

/** Welford's running variance: one pass, no large intermediate sums, and exactly 0 for values that are all the same. */
export function spread(values: ArrayLike<number>, from = 0, to = values.length): { average: number; variance: number } {
  let average = 0;
  let count = 0;
  let q = 0;
  for (let i = from; i < to; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) continue;
    count++;
    const next = average + (value - average) / count;
    q += (value - average) * (value - next);
    average = next;
  }
  return count === 0 ? { average: Number.NaN, variance: Number.NaN } : { average, variance: q / count };
}

/** The most frequent value, of several the smallest. `before` counts as one more sample in front. */
export function mode(sorted: ArrayLike<number>, before: number): number {
  let best = before;
  let most = Number.isNaN(before) ? 0 : 1;
  let run = most;
  let current = before;
  for (let i = 0; i < sorted.length; i++) {
    const value = sorted[i] as number;
    run = value === current ? run + 1 : 1;
    current = value;
    if (run <= most) continue;
    most = run;
    best = value;
  }
  return best;
}

/** Least squares: the value at `origin` and the slope per second. */
export function regression(
  values: Float64Array,
  times: Float64Array,
  from: number,
  to: number,
  origin: number,
): [number, number] {
  let n = 0;
  let sumV = 0;
  let sumT = 0;
  let sumTV = 0;
  let sumTT = 0;
  let constant = true;
  for (let i = from; i < to; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) continue;
    const t = ((times[i] as number) - origin) / 1000;
    if (value !== values[from]) constant = false;
    n++;
    sumV += value;
    sumT += t;
    sumTV += t * value;
    sumTT += t * t;
  }
  if (n === 0) return [Number.NaN, Number.NaN];
  if (constant) return [values[from] as number, 0];
  const spread = sumTT - (sumT * sumT) / n;
  const slope = Math.abs(spread) < 1e-6 ? 0 : (sumTV - (sumT * sumV) / n) / spread;
  return [sumV / n - (slope * sumT) / n, slope];
}
