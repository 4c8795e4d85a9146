import { type Bucket, negativeBucket, places, positiveBucket, shareBelow, zeroBucket } from "./buckets.ts";
import { type Buckets, compact, type FloatHistogram, hasCustomBuckets } from "./histogram.ts";

/** The observations on one side of a value, as far as buckets tell: `h </ 5` keeps those below, `h >/ 5` those above. */

interface Kept {
  count: number;
  /** The value that the observations that are kept stand for. */
  middle: number;
}

interface Cut {
  at: number;
  keepsBelow: boolean;
  straight: boolean;
}

/** Count and sum are computed anew when something was cut off. */
export function trimHistogram(histogram: FloatHistogram, at: number, keepsBelow: boolean): FloatHistogram {
  const cut: Cut = { at, keepsBelow, straight: hasCustomBuckets(histogram) };
  const total = { count: 0, sum: 0, changed: false };
  const take = (bucket: Bucket, keep: Kept): number => {
    total.count += keep.count;
    total.sum += keep.middle * keep.count;
    total.changed ||= keep.count !== bucket.count;
    return keep.count;
  };
  const side = (buckets: Buckets, sign: 1 | -1): Buckets => ({
    indexes: buckets.indexes,
    counts: places(buckets).map((place) => {
      const bucket = sign > 0 ? positiveBucket(histogram, place) : negativeBucket(histogram, place);
      return bucket.count === 0 ? 0 : take(bucket, keptOf(bucket, cut, sign));
    }),
  });
  const positive = side(histogram.positive, 1);
  const negative = side(histogram.negative, -1);
  const zero = zeroBucket(histogram);
  const zero_count = zero.count > 0 ? take(zero, keptOfZero(zero, cut, hasAny(histogram))) : zero.count;
  if (!total.changed) return histogram;
  return compact({ ...histogram, positive, negative, zero_count, count: total.count, sum: total.sum });
}

function hasAny({ positive, negative }: FloatHistogram): { below: boolean; above: boolean } {
  const some = ({ counts }: Buckets): boolean => counts.some((count) => count !== 0);
  return { below: some(negative), above: some(positive) };
}

function keptOf(bucket: Bucket, cut: Cut, sign: 1 | -1): Kept {
  const { lower, upper, count } = bucket;
  const all = cut.keepsBelow ? upper <= cut.at : lower >= cut.at;
  if (all) return { count, middle: middleOf(lower, upper, cut, sign) };
  const some = cut.keepsBelow ? lower < cut.at : upper > cut.at;
  if (!some) return { count: 0, middle: 0 };
  if (lower === -Infinity || upper === Infinity) return keptOfEndless(bucket, cut);
  const below = count * shareBelow(bucket, cut.at, cut.straight);
  return cut.keepsBelow
    ? { count: below, middle: middleOf(lower, cut.at, cut, sign) }
    : { count: count - below, middle: middleOf(cut.at, upper, cut, sign) };
}

const finiteOr0 = (value: number): number => (Number.isFinite(value) ? value : 0);

/** A bucket without an end cannot be divided, but the lowest one is taken to begin at 0 when it ends above. */
function keptOfEndless({ lower, upper, count }: Bucket, { at, keepsBelow }: Cut): Kept {
  const nothing = (middle: number): Kept => ({ count: 0, middle: finiteOr0(middle) });
  if (lower !== -Infinity) return !keepsBelow && at >= lower ? { count, middle: at } : nothing(lower);
  if (keepsBelow) {
    if (at >= upper) return { count, middle: 0 };
    if (at > 0 && upper > 0 && upper !== Infinity) return { count: (count * at) / upper, middle: at / 2 };
    return upper <= 0 ? { count, middle: at } : nothing(upper);
  }
  if (at <= lower) return { count, middle: 0 };
  if (at >= 0 && upper > at && upper !== Infinity) return { count: count * (1 - at / upper), middle: (at + upper) / 2 };
  return nothing(upper);
}

/** The zero bucket lies on one side only when all the others do. */
function keptOfZero(zero: Bucket, { at, keepsBelow }: Cut, has: { below: boolean; above: boolean }): Kept {
  const upper = has.below && !has.above ? 0 : zero.upper;
  const lower = has.above && !has.below ? 0 : zero.lower;
  const all: Kept = { count: zero.count, middle: (lower + upper) / 2 };
  const none: Kept = { count: 0, middle: 0 };
  if (at <= lower) return keepsBelow ? none : all;
  if (at >= upper) return keepsBelow ? all : none;
  const share = (keepsBelow ? at - lower : upper - at) / (upper - lower);
  return { count: zero.count * share, middle: ((keepsBelow ? lower : upper) + at) / 2 };
}

function middleOf(lower: number, upper: number, { straight }: Cut, sign: 1 | -1): number {
  if (!Number.isFinite(lower)) {
    if (!Number.isFinite(upper)) return 0;
    return upper > 0 ? upper / 2 : upper;
  }
  if (!Number.isFinite(upper)) return lower;
  return straight ? (lower + upper) / 2 : sign * Math.sqrt(Math.abs(lower * upper));
}
