/**
 * A native histogram: counts of observations in buckets whose bounds follow from a number, the *schema*, and not from a
 * list that every sender chooses. Values are never changed once made, so that samples, rows and results may share them.
 *
 * With schema n (-4 to 8) the bucket of index i counts observations in (2^((i-1)/2^n), 2^(i/2^n)], on the negative side
 * mirrored. Observations within the zero threshold are in the zero bucket. Schema -53 means bounds of one's own.
 */
export interface FloatHistogram {
  readonly hint: ResetHint;
  readonly schema: number;
  readonly zero_threshold: number;
  readonly zero_count: number;
  readonly count: number;
  readonly sum: number;
  readonly positive: Buckets;
  readonly negative: Buckets;
  /** Upper bounds of custom buckets, rising, without the infinite one; empty with other schemas. */
  readonly bounds: readonly number[];
}

/** Bucket numbers, rising, and the count of each. A bucket that is not listed is empty; a listed one may be. */
export interface Buckets {
  readonly indexes: readonly number[];
  readonly counts: readonly number[];
}

/** What is known of a counter reset between a sample and the one before; `gauge` is no counter at all. */
export const RESET_HINTS = ["unknown", "reset", "not_reset", "gauge"] as const;
export type ResetHint = (typeof RESET_HINTS)[number];

export const CUSTOM_SCHEMA = -53;
export const LEAST_SCHEMA = -4;
export const MOST_SCHEMA = 8;

export const NO_BUCKETS: Buckets = { indexes: [], counts: [] };

export const EMPTY_HISTOGRAM: FloatHistogram = {
  hint: "unknown",
  schema: 0,
  zero_threshold: 0,
  zero_count: 0,
  count: 0,
  sum: 0,
  positive: NO_BUCKETS,
  negative: NO_BUCKETS,
  bounds: [],
};

export const hasCustomBuckets = ({ schema }: FloatHistogram): boolean => schema === CUSTOM_SCHEMA;

export function withHint(histogram: FloatHistogram, hint: ResetHint): FloatHistogram {
  return histogram.hint === hint ? histogram : { ...histogram, hint };
}

/** What a histogram takes in memory, roughly. */
export function sizeOf({ positive, negative, bounds }: FloatHistogram): number {
  return 200 + 16 * (positive.counts.length + negative.counts.length) + 8 * bounds.length;
}

export const sameNumbers = (a: readonly number[], b: readonly number[]): boolean =>
  a === b || (a.length === b.length && a.every((value, i) => Object.is(value, b[i])));

/** Without buckets that count nothing. */
export function compact(histogram: FloatHistogram): FloatHistogram {
  const { positive, negative } = histogram;
  if (!positive.counts.includes(0) && !negative.counts.includes(0)) return histogram;
  return { ...histogram, positive: filled(positive), negative: filled(negative) };
}

function filled({ indexes, counts }: Buckets): Buckets {
  return { indexes: indexes.filter((_, i) => counts[i] !== 0), counts: counts.filter((count) => count !== 0) };
}

/** Equal in all but the hint; counts by their bits, so that NaN equals itself. */
export function equalHistograms(a: FloatHistogram, b: FloatHistogram): boolean {
  const [left, right] = [compact(a), compact(b)];
  const numbers = (h: FloatHistogram): number[] => [h.schema, h.count, h.sum, h.zero_threshold, h.zero_count];
  return (
    sameNumbers(numbers(a), numbers(b)) &&
    sameNumbers(a.bounds, b.bounds) &&
    sameNumbers(left.positive.indexes, right.positive.indexes) &&
    sameNumbers(left.positive.counts, right.positive.counts) &&
    sameNumbers(left.negative.indexes, right.negative.indexes) &&
    sameNumbers(left.negative.counts, right.negative.counts)
  );
}

/** Consecutive buckets: what Prometheus sends them as. `offset` is the gap to the span before. */
export interface Span {
  offset: number;
  length: number;
}

/** Throws a RangeError when the spans do not have as many buckets as there are counts. */
export function bucketsOf(spans: readonly Span[], counts: readonly number[]): Buckets {
  const indexes: number[] = [];
  let index = 0;
  for (const [i, { offset, length }] of spans.entries()) {
    if (i > 0 && offset < 0) throw new RangeError("a span begins before the end of the one before");
    if (indexes.length + length > counts.length) throw new RangeError("the spans have more buckets than were sent");
    index += offset;
    for (let n = 0; n < length; n++) indexes.push(index++);
  }
  if (indexes.length < counts.length) throw new RangeError("the spans have fewer buckets than were sent");
  return { indexes, counts };
}

/** What is wrong with a histogram that somebody sent; undefined when nothing is. */
export function histogramProblem(histogram: FloatHistogram): string | undefined {
  const { schema, bounds, zero_count, zero_threshold, count, positive, negative } = histogram;
  if (hasCustomBuckets(histogram)) {
    if (!bounds.every((bound, i) => Number.isFinite(bound) && (i === 0 || bound > (bounds[i - 1] as number))))
      return "the bounds of custom buckets must be finite and rise";
    if (zero_count !== 0 || zero_threshold !== 0 || negative.counts.length > 0)
      return "custom buckets have no zero bucket and no negative side";
    const [first = 0, last = 0] = [positive.indexes[0], positive.indexes.at(-1)];
    if (first < 0 || last > bounds.length) return "there are more custom buckets than bounds";
  } else if (!(Number.isInteger(schema) && schema >= LEAST_SCHEMA && schema <= MOST_SCHEMA))
    return `the schema ${schema} is not from ${LEAST_SCHEMA} to ${MOST_SCHEMA}, or ${CUSTOM_SCHEMA} for custom buckets`;
  else if (bounds.length > 0) return "only custom buckets have bounds";
  const counts = [count, zero_count, ...positive.counts, ...negative.counts];
  return counts.some((one) => one < 0) ? "a count is negative" : undefined;
}
