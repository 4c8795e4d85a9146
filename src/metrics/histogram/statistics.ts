import { allBuckets, type Bucket, shareBelow } from "./buckets.ts";
import { type FloatHistogram, hasCustomBuckets } from "./histogram.ts";

/** Numbers that describe a histogram. Within a bucket observations are taken to be spread evenly. */

/** What stands beside a number because observations of NaN are in no bucket. */
export type NanNote = "nan_result" | "nan_skew";

interface Described {
  value: number;
  note?: NanNote;
}

const { NEGATIVE_INFINITY, POSITIVE_INFINITY } = Number;

/** The zero bucket counts on one side only when all the others do. */
function zeroOnOneSide({ positive, negative }: FloatHistogram, bucket: Bucket): void {
  if (negative.counts.length === 0 && positive.counts.length > 0) bucket.lower = 0;
  else if (positive.counts.length === 0 && negative.counts.length > 0) bucket.upper = 0;
}

export function quantileOfHistogram(phi: number, histogram: FloatHistogram): Described {
  if (phi < 0) return { value: NEGATIVE_INFINITY };
  if (phi > 1) return { value: POSITIVE_INFINITY };
  if (histogram.count === 0 || Number.isNaN(phi)) return { value: Number.NaN };
  const hasNaN = Number.isNaN(histogram.sum);
  // The shorter way to the bucket, which loses less to rounding.
  const forward = hasNaN || phi < 0.5;
  const buckets = forward ? allBuckets(histogram) : allBuckets(histogram).reverse();
  const rank = (forward ? phi : 1 - phi) * histogram.count;
  const { bucket, count, place } = bucketOfRank(buckets, rank);
  const edge = edgeOf(histogram, bucket);
  if (edge !== undefined) return { value: edge };
  const within = Math.min(count, histogram.count);
  if (within < rank) return hasNaN ? { value: Number.NaN, note: "nan_result" } : { value: bucket.upper };
  const all = hasNaN ? buckets.slice(place + 1).reduce((sum, one) => sum + one.count, within) : histogram.count;
  const inside = forward ? rank - (within - bucket.count) : within - rank;
  const value = valueWithin(histogram, bucket, inside / bucket.count);
  return all < histogram.count ? { value, note: "nan_skew" } : { value };
}

function bucketOfRank(buckets: Bucket[], rank: number): { bucket: Bucket; count: number; place: number } {
  let bucket: Bucket = { lower: 0, upper: 0, count: 0, lower_included: true, upper_included: true };
  let count = 0;
  let place = -1;
  for (const [i, one] of buckets.entries()) {
    place = i;
    bucket = one;
    if (one.count === 0) continue;
    count += one.count;
    if (count >= rank) break;
  }
  return { bucket, count, place };
}

/** A bucket without an end cannot be divided. Changes the bucket where one of its ends is known better. */
function edgeOf(histogram: FloatHistogram, bucket: Bucket): number | undefined {
  if (!hasCustomBuckets(histogram)) {
    if (bucket.lower < 0 && bucket.upper > 0) zeroOnOneSide(histogram, bucket);
    return undefined;
  }
  if (bucket.lower === NEGATIVE_INFINITY) {
    if (bucket.upper <= 0) return bucket.upper;
    bucket.lower = 0;
    return undefined;
  }
  return bucket.upper === POSITIVE_INFINITY ? bucket.lower : undefined;
}

function valueWithin(histogram: FloatHistogram, { lower, upper }: Bucket, share: number): number {
  if (hasCustomBuckets(histogram) || (lower <= 0 && upper >= 0)) return lower + (upper - lower) * share;
  const [logLower, logUpper] = [Math.log2(Math.abs(lower)), Math.log2(Math.abs(upper))];
  if (lower > 0) return 2 ** (logLower + (logUpper - logLower) * share);
  return -(2 ** (logUpper + (logLower - logUpper) * (1 - share)));
}

/** The share of observations between two values. */
export function fractionOfHistogram(lower: number, upper: number, histogram: FloatHistogram): Described {
  if (histogram.count === 0 || Number.isNaN(lower) || Number.isNaN(upper)) return { value: Number.NaN };
  if (lower >= upper) return { value: 0 };
  const buckets = allBuckets(histogram);
  const counted = Number.isNaN(histogram.sum) ? buckets.reduce((sum, { count }) => sum + count, 0) : histogram.count;
  const [from, to] = [lower, upper].map((bound) => Math.min(rankOf(bound, histogram, buckets) ?? counted, counted));
  const value = ((to as number) - (from as number)) / histogram.count;
  return counted < histogram.count ? { value, note: "nan_skew" } : { value };
}

/** How many observations are below a value; undefined when all are. */
function rankOf(bound: number, histogram: FloatHistogram, buckets: readonly Bucket[]): number | undefined {
  let rank = 0;
  for (const one of buckets) {
    const bucket = { ...one };
    const straight = bucket.lower <= 0 && bucket.upper >= 0;
    if (straight) zeroOnOneSide(histogram, bucket);
    if (bucket.lower >= bound) return rank;
    if (bucket.upper > bound) {
      if (bucket.lower === NEGATIVE_INFINITY && (straight || hasCustomBuckets(histogram))) return bucket.count;
      return rank + bucket.count * shareBelow(bucket, bound, straight || hasCustomBuckets(histogram));
    }
    rank += bucket.count;
  }
  return undefined;
}

export const averageOfHistogram = ({ sum, count }: FloatHistogram): number => sum / count;

/** Each bucket stands for one value: its middle, on the scale of its bounds. */
export function varianceOfHistogram(histogram: FloatHistogram): number {
  const mean = averageOfHistogram(histogram);
  let sum = 0;
  let lost = 0;
  for (const { lower, upper, count } of allBuckets(histogram)) {
    if (count === 0) continue;
    const term = count * (middleOf(histogram, lower, upper) - mean) ** 2;
    const next = sum + term;
    if (Number.isFinite(next)) lost += sum >= term ? sum - next + term : term - next + sum;
    sum = next;
  }
  return (Number.isFinite(sum) ? sum + lost : sum) / histogram.count;
}

function middleOf(histogram: FloatHistogram, lower: number, upper: number): number {
  if (hasCustomBuckets(histogram)) return (upper + lower) / 2;
  if (lower <= 0 && upper >= 0) return 0;
  return Math.sqrt(upper * lower) * (upper < 0 ? -1 : 1);
}
