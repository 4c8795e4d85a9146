import { type Buckets, type FloatHistogram, hasCustomBuckets } from "./histogram.ts";

/** Bounds of buckets, and the buckets of a histogram in the order of the number line. */

export interface Bucket {
  lower: number;
  upper: number;
  count: number;
  lower_included: boolean;
  upper_included: boolean;
}

/** Doubles end below 2^1024; the bucket after the last one of them counts infinities. */
const BEYOND = 1024;

/** The upper bound of the bucket `index`. */
export function boundOf(index: number, schema: number): number {
  const parts = 2 ** schema;
  const exponent = Math.floor(index / parts);
  const rest = index - exponent * parts;
  if (exponent === BEYOND && rest === 0) return Number.MAX_VALUE;
  return 2 ** exponent * 2 ** (rest / parts);
}

function customBound(index: number, bounds: readonly number[]): number {
  if (index < 0) return Number.NEGATIVE_INFINITY;
  return bounds[index] ?? Number.POSITIVE_INFINITY;
}

/** The bucket at a place of the list. */
export function positiveBucket(histogram: FloatHistogram, place: number): Bucket {
  const { schema, bounds, positive } = histogram;
  const index = positive.indexes[place] as number;
  const count = positive.counts[place] as number;
  if (hasCustomBuckets(histogram)) {
    const [lower, upper] = [customBound(index - 1, bounds), customBound(index, bounds)];
    return { lower, upper, count, lower_included: index === 0, upper_included: true };
  }
  const [lower, upper] = [boundOf(index - 1, schema), boundOf(index, schema)];
  return { lower, upper, count, lower_included: false, upper_included: true };
}

export function negativeBucket({ schema, negative }: FloatHistogram, place: number): Bucket {
  const index = negative.indexes[place] as number;
  const [lower, upper] = [-boundOf(index, schema), -boundOf(index - 1, schema)];
  return { lower, upper, count: negative.counts[place] as number, lower_included: true, upper_included: false };
}

export function zeroBucket({ zero_threshold, zero_count }: FloatHistogram): Bucket {
  return {
    lower: -zero_threshold,
    upper: zero_threshold,
    count: zero_count,
    lower_included: true,
    upper_included: true,
  };
}

/** All buckets, from the lowest up; none reaches into the zero bucket. */
export function allBuckets(histogram: FloatHistogram): Bucket[] {
  const { positive, negative, zero_count, zero_threshold } = histogram;
  const below = places(negative).reverse();
  const out = below.map((place) => outside(negativeBucket(histogram, place), zero_threshold));
  if (zero_count > 0) out.push(zeroBucket(histogram));
  for (const place of places(positive)) out.push(outside(positiveBucket(histogram, place), zero_threshold));
  return out;
}

export const places = ({ counts }: Buckets): number[] => Array.from(counts.keys());

function outside(bucket: Bucket, threshold: number): Bucket {
  if (bucket.upper < 0 && bucket.upper > -threshold) bucket.upper = -threshold;
  else if (bucket.lower > 0 && bucket.lower < threshold) bucket.lower = threshold;
  return bucket;
}

/** The share of a bucket that lies below a value: straight, or along the bucket's own exponential. */
export function shareBelow({ lower, upper }: Bucket, value: number, straight: boolean): number {
  if (straight) return (value - lower) / (upper - lower);
  const [logLower, logUpper] = [Math.log2(Math.abs(lower)), Math.log2(Math.abs(upper))];
  const log = Math.log2(Math.abs(value));
  if (value > 0) return (log - logLower) / (logUpper - logLower);
  return 1 - (log - logUpper) / (logLower - logUpper);
}
