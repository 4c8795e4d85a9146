/** Numbers of classic histograms: cumulative counts under upper bounds, the last of which is infinite. */

export interface Bucket {
  le: number;
  count: number;
}

const INF = Number.POSITIVE_INFINITY;
/** Counts that differ by less than this in proportion differ by rounding. */
const TOLERANCE = 1e-12;

function almostEqual(a: number, b: number): boolean {
  const apart = Math.abs(a - b);
  const size = Math.abs(a) + Math.abs(b);
  if (a === 0 || b === 0 || size < 2.2250738585072014e-308) return apart < TOLERANCE * 2.2250738585072014e-308;
  return apart / Math.min(size, Number.MAX_VALUE) < TOLERANCE;
}

/** Counts that fall with rising bounds are raised; true when one fell by more than rounding. */
function makeMonotonic(buckets: Bucket[]): boolean {
  let forced = false;
  let before = buckets[0]?.count ?? 0;
  for (const bucket of buckets.slice(1)) {
    if (bucket.count === before) continue;
    if (almostEqual(before, bucket.count)) bucket.count = before;
    else if (bucket.count < before) {
      bucket.count = before;
      forced = true;
    } else before = bucket.count;
  }
  return forced;
}

/** A straight line within the bucket; the last one has no end, so its start is the answer. */
function rankedQuantile(phi: number, buckets: Bucket[]): number {
  const last = buckets.length - 1;
  const total = buckets[last]?.count ?? 0;
  if (buckets.length < 2 || total === 0 || Number.isNaN(total)) return Number.NaN;
  let rank = phi * total;
  const found = buckets.findIndex((bucket) => bucket.count >= rank);
  const place = found < 0 ? last : found;
  const bucket = buckets[place] as Bucket;
  if (place === last) return buckets[last - 1]?.le ?? Number.NaN;
  if (place === 0 && bucket.le <= 0) return bucket.le;
  const below = buckets[place - 1];
  const start = below?.le ?? 0;
  const count = bucket.count - (below?.count ?? 0);
  rank -= below?.count ?? 0;
  return start + (bucket.le - start) * (rank / count);
}

/** The answer outside 0..1 is an infinity. `forced` when counts fell with rising bounds and were raised. */
export function quantileOfClassic(phi: number, buckets: Bucket[]): { value: number; forced: boolean } {
  if (Number.isNaN(phi)) return { value: Number.NaN, forced: false };
  if (phi < 0 || phi > 1) return { value: phi < 0 ? -INF : INF, forced: false };
  if (buckets.at(-1)?.le !== INF) return { value: Number.NaN, forced: false };
  const forced = makeMonotonic(buckets);
  return { value: rankedQuantile(phi, buckets), forced };
}

/** How many observations are at most `bound`, on a straight line within its bucket. */
function rankOf(bound: number, buckets: Bucket[], total: number, isLower: boolean): number {
  const place = buckets.findIndex(({ le }) => bound < le);
  const bucket = buckets[place];
  if (!bucket) return total;
  const below = buckets[place - 1];
  const under = below?.count ?? 0;
  const start = below?.le ?? (bucket.le > 0 ? 0 : Number.NEGATIVE_INFINITY);
  // A bucket without a lower bound cannot be divided, so none of it lies between the two requested bounds.
  if (start === Number.NEGATIVE_INFINITY) return isLower && bound !== start ? bucket.count : under;
  if (bound <= start || bucket.le === INF) return under;
  return under + ((bucket.count - under) * (bound - start)) / (bucket.le - start);
}

export function fractionOfClassic(lower: number, upper: number, buckets: Bucket[]): number {
  const total = buckets.at(-1)?.count ?? 0;
  if (buckets.at(-1)?.le !== INF || total === 0 || Number.isNaN(lower) || Number.isNaN(upper)) return Number.NaN;
  if (lower >= upper) return 0;
  makeMonotonic(buckets);
  const until = upper === INF ? total : Math.min(total, rankOf(upper, buckets, total, false));
  return (until - Math.min(total, rankOf(lower, buckets, total, true))) / total;
}
