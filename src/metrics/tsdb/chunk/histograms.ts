import {
  type Buckets,
  CUSTOM_SCHEMA,
  type FloatHistogram,
  histogramProblem,
  RESET_HINTS,
  sameNumbers,
} from "../../histogram/histogram.ts";
import { type ByteReader, type ByteWriter, DamagedBytes } from "../bytes.ts";

/**
 * Native histograms of a chunk or a record, each after the one before:
 *
 *     1 byte: hint (bits 0-1), buckets as before (2), whole counts (3) · sum, 8 bytes · [buckets] · counts
 *     buckets: zigzag schema · zero threshold, 8 bytes, or custom bounds: varint count, 8 bytes each · both sides
 *     side: varint count · zigzag first number · varint gaps to the one before
 *     counts: all, zero bucket, positive, negative; whole ones as zigzag differences to those before
 *
 * Buckets are mostly those of the histogram before, and whole counts mostly grow by little.
 */
const SAME_BUCKETS = 4;
const WHOLE = 8;
/** A whole count and its difference to another are exact below this. */
const LARGEST = 2 ** 51;
/** A histogram with more is damaged: none is let in with so many. */
const BUCKETS_MOST = 100_000;

export function putHistogramBytes(out: ByteWriter, histogram: FloatHistogram, before?: FloatHistogram): void {
  const isSame = before !== undefined && sameBuckets(histogram, before);
  const counts = countsOf(histogram);
  const old = isSame ? countsOf(before) : undefined;
  const isWhole = counts.every(isWholeCount) && (old?.every(isWholeCount) ?? true);
  out.byte(RESET_HINTS.indexOf(histogram.hint) | (isSame ? SAME_BUCKETS : 0) | (isWhole ? WHOLE : 0));
  putDouble(out, histogram.sum);
  if (!isSame) putBuckets(out, histogram);
  for (const [i, count] of counts.entries()) {
    if (isWhole) out.zigzag(count - (old?.[i] ?? 0));
    else putDouble(out, count);
  }
}

const isWholeCount = (count: number): boolean =>
  Number.isInteger(count) && Math.abs(count) < LARGEST && !Object.is(count, -0);

const countsOf = ({ count, zero_count, positive, negative }: FloatHistogram): number[] => [
  count,
  zero_count,
  ...positive.counts,
  ...negative.counts,
];

function sameBuckets(a: FloatHistogram, b: FloatHistogram): boolean {
  return (
    a.schema === b.schema &&
    a.zero_threshold === b.zero_threshold &&
    sameNumbers(a.bounds, b.bounds) &&
    sameNumbers(a.positive.indexes, b.positive.indexes) &&
    sameNumbers(a.negative.indexes, b.negative.indexes)
  );
}

function putBuckets(out: ByteWriter, { schema, bounds, zero_threshold, positive, negative }: FloatHistogram): void {
  out.zigzag(schema);
  if (schema === CUSTOM_SCHEMA) {
    out.varint(bounds.length);
    for (const bound of bounds) putDouble(out, bound);
  } else putDouble(out, zero_threshold);
  for (const { indexes } of [positive, negative]) {
    out.varint(indexes.length);
    for (const [i, index] of indexes.entries()) {
      if (i === 0) out.zigzag(index);
      else out.varint(index - (indexes[i - 1] as number) - 1);
    }
  }
}

const double = new Float64Array(1);
const bytes = new Uint8Array(double.buffer);

function putDouble(out: ByteWriter, value: number): void {
  double[0] = value;
  out.raw(bytes);
}

function readDouble(from: ByteReader): number {
  bytes.set(from.raw(8));
  return double[0] as number;
}

/** Throws DamagedBytes. */
export function readHistogram(from: ByteReader, before?: FloatHistogram): FloatHistogram {
  const head = from.byte();
  const hint = RESET_HINTS[head & 3] ?? "unknown";
  const sum = readDouble(from);
  const isSame = (head & SAME_BUCKETS) !== 0;
  if (head > 15 || (isSame && !before)) throw new DamagedBytes("not a histogram");
  const buckets = isSame && before ? before : readBuckets(from);
  const { positive, negative } = buckets;
  const old = isSame ? countsOf(buckets) : undefined;
  const length = 2 + positive.indexes.length + negative.indexes.length;
  const isWhole = (head & WHOLE) !== 0;
  const counts = Array.from({ length }, (_, i) => (isWhole ? from.zigzag() + (old?.[i] ?? 0) : readDouble(from)));
  const [count = 0, zero_count = 0] = counts;
  const end = 2 + positive.indexes.length;
  return {
    ...buckets,
    hint,
    sum,
    count,
    zero_count,
    positive: { indexes: positive.indexes, counts: counts.slice(2, end) },
    negative: { indexes: negative.indexes, counts: counts.slice(end) },
  };
}

function readBuckets(from: ByteReader): FloatHistogram {
  const schema = from.zigzag();
  const isCustom = schema === CUSTOM_SCHEMA;
  const bounds = isCustom ? Array.from({ length: lengthOf(from) }, () => readDouble(from)) : [];
  const zero_threshold = isCustom ? 0 : readDouble(from);
  const positive = readSide(from);
  const negative = readSide(from);
  const plain = { hint: "unknown", count: 0, sum: 0, zero_count: 0 } as const;
  const histogram: FloatHistogram = { ...plain, schema, bounds, zero_threshold, positive, negative };
  const problem = histogramProblem(histogram);
  if (problem !== undefined) throw new DamagedBytes(`not a histogram: ${problem}`);
  return histogram;
}

function readSide(from: ByteReader): Buckets {
  const indexes: number[] = [];
  for (let left = lengthOf(from); left > 0; left--) {
    const before = indexes.at(-1);
    indexes.push(before === undefined ? from.zigzag() : before + 1 + from.varint());
  }
  return { indexes, counts: [] };
}

function lengthOf(from: ByteReader): number {
  const length = from.varint();
  if (length > BUCKETS_MOST) throw new DamagedBytes("a histogram with too many buckets");
  return length;
}
