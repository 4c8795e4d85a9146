import { type Bucket, boundOf, negativeBucket, places, positiveBucket } from "./buckets.ts";
import { type Buckets, type FloatHistogram, sameNumbers } from "./histogram.ts";

/** Brings two histograms to the same buckets: the coarser schema, the wider zero bucket, the bounds that both have. */

/** The bucket of a lower schema in which the whole bucket lies. */
const coarser = (index: number, steps: number): number => Math.floor((index - 1) / 2 ** steps) + 1;

/** The same counts in the buckets of a lower schema. */
export function reduceResolution(buckets: Buckets, schema: number, target: number): Buckets {
  if (schema === target) return buckets;
  const indexes: number[] = [];
  const counts: number[] = [];
  for (const [i, index] of buckets.indexes.entries()) {
    const to = coarser(index, schema - target);
    if (indexes.at(-1) !== to) {
      indexes.push(to);
      counts.push(0);
    }
    counts[counts.length - 1] = (counts.at(-1) ?? 0) + (buckets.counts[i] as number);
  }
  return { indexes, counts };
}

export function atSchema(histogram: FloatHistogram, schema: number): FloatHistogram {
  if (histogram.schema === schema) return histogram;
  const positive = reduceResolution(histogram.positive, histogram.schema, schema);
  return { ...histogram, schema, positive, negative: reduceResolution(histogram.negative, histogram.schema, schema) };
}

/**
 * The threshold and count of a zero bucket that is at least so wide: a bucket that it would cut is taken in whole, and
 * makes it wider.
 */
export function widerZero(histogram: FloatHistogram, threshold: number): { threshold: number; count: number } {
  if (threshold === histogram.zero_threshold) return { threshold, count: histogram.zero_count };
  const buckets: Extent[] = [
    ...places(histogram.positive).map((place) => positiveBucket(histogram, place)),
    ...places(histogram.negative).map((place) => mirrored(negativeBucket(histogram, place))),
  ];
  for (let wide = threshold; ; ) {
    let count = histogram.zero_count;
    let cut = wide;
    for (const bucket of buckets) {
      if (bucket.lower >= wide) continue;
      count += bucket.count;
      if (bucket.upper > wide && bucket.count !== 0) cut = Math.max(cut, bucket.upper);
    }
    if (cut === wide) return { threshold: wide, count };
    wide = cut;
  }
}

type Extent = Pick<Bucket, "lower" | "upper" | "count">;

const mirrored = ({ lower, upper, count }: Bucket): Extent => ({ lower: -upper, upper: -lower, count });

/** The zero threshold that both can have without cutting a bucket. */
export function commonThreshold(a: FloatHistogram, b: FloatHistogram): number {
  let threshold = Math.max(a.zero_threshold, b.zero_threshold);
  for (;;) {
    const wide = widerZero(b, widerZero(a, threshold).threshold).threshold;
    if (wide === threshold) return threshold;
    threshold = wide;
  }
}

/** With a zero bucket of a threshold that cuts no bucket. */
export function atThreshold(histogram: FloatHistogram, threshold: number): FloatHistogram {
  if (histogram.zero_threshold === threshold) return histogram;
  const { schema, positive, negative } = histogram;
  return {
    ...histogram,
    zero_threshold: threshold,
    zero_count: widerZero(histogram, threshold).count,
    positive: above(positive, schema, threshold),
    negative: above(negative, schema, threshold),
  };
}

/** Buckets that are not within the zero bucket. */
export function above({ indexes, counts }: Buckets, schema: number, threshold: number): Buckets {
  const keep = indexes.map((index) => boundOf(index, schema) > threshold);
  return { indexes: indexes.filter((_, i) => keep[i]), counts: counts.filter((_, i) => keep[i]) };
}

/** The bounds that both have. */
export function commonBounds(a: readonly number[], b: readonly number[]): readonly number[] {
  if (sameNumbers(a, b)) return a;
  const other = new Set(b);
  return a.filter((bound) => other.has(bound));
}

/** The same counts in custom buckets with fewer bounds. */
export function atBounds(histogram: FloatHistogram, bounds: readonly number[]): FloatHistogram {
  if (sameNumbers(histogram.bounds, bounds)) return histogram;
  const indexes: number[] = [];
  const counts: number[] = [];
  for (const [i, index] of histogram.positive.indexes.entries()) {
    const upper = histogram.bounds[index] ?? Number.POSITIVE_INFINITY;
    const found = bounds.findIndex((bound) => bound >= upper);
    const to = found < 0 ? bounds.length : found;
    if (indexes.at(-1) !== to) {
      indexes.push(to);
      counts.push(0);
    }
    counts[counts.length - 1] = (counts.at(-1) ?? 0) + (histogram.positive.counts[i] as number);
  }
  return { ...histogram, bounds, positive: { indexes, counts } };
}
