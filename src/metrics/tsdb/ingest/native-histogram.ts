import {
  type Buckets,
  bucketsOf,
  CUSTOM_SCHEMA,
  type FloatHistogram,
  histogramProblem,
  MOST_SCHEMA,
  RESET_HINTS,
  type Span,
} from "../../histogram/histogram.ts";
import { atSchema } from "../../histogram/layout.ts";
import { isStale } from "../../source.ts";
import { BadWire, type WireReader } from "./protobuf.ts";

/** The message Histogram: of both versions of remote write, and with other numbers of a scrape. */

/** What a sender says of one moment of a series. */
export interface NativeSample {
  timestamp: number;
  /** The series ends here, instead of a histogram. */
  ended: boolean;
  histogram: FloatHistogram;
}

/** Schemas that are known but too fine to be kept: their buckets are merged. */
const FINEST_SCHEMA = 52;
const COARSEST_SCHEMA = -4;

/** Fields by number, in remote write. */
const WRITE_FIELDS = {
  count_int: 1,
  count_float: 2,
  sum: 3,
  schema: 4,
  zero_threshold: 5,
  zero_count_int: 6,
  zero_count_float: 7,
  negative_spans: 8,
  negative_deltas: 9,
  negative_counts: 10,
  positive_spans: 11,
  positive_deltas: 12,
  positive_counts: 13,
  reset_hint: 14,
  timestamp: 15,
  custom_values: 16,
};

type HistogramFields = typeof WRITE_FIELDS;

const NONE = -1;

/** The same in the message of a scrape, which has no times, hints and bounds of one's own. */
export const CLIENT_FIELDS: HistogramFields = {
  count_int: 1,
  count_float: 4,
  sum: 2,
  schema: 5,
  zero_threshold: 6,
  zero_count_int: 7,
  zero_count_float: 8,
  negative_spans: 9,
  negative_deltas: 10,
  negative_counts: 11,
  positive_spans: 12,
  positive_deltas: 13,
  positive_counts: 14,
  reset_hint: NONE,
  timestamp: NONE,
  custom_values: NONE,
};

interface Side {
  spans: Span[];
  deltas: number[];
  counts: number[];
}

/** Throws BadWire when the bytes are no such message, and RangeError with what is wrong with the histogram. */
export function readNative(from: WireReader, end: number, fields = WRITE_FIELDS): NativeSample {
  const numbers = new Map<number, number>();
  const bounds: number[] = [];
  const positive: Side = { spans: [], deltas: [], counts: [] };
  const negative: Side = { spans: [], deltas: [], counts: [] };
  while (from.at < end) {
    const tag = from.varint();
    const field = tag >>> 3;
    if (field === fields.custom_values) readDoubles(from, tag, end, bounds);
    else if (field >= fields.negative_spans && field <= fields.negative_counts)
      readSide(from, tag, end, fields, negative);
    else if (field >= fields.positive_spans && field <= fields.positive_counts)
      readSide(from, tag, end, fields, positive);
    else numbers.set(field, readNumber(from, tag, end, fields));
  }
  return sampleOf(fields, numbers, positive, negative, bounds);
}

function sampleOf(
  fields: HistogramFields,
  numbers: Map<number, number>,
  positive: Side,
  negative: Side,
  bounds: number[],
): NativeSample {
  const one = (field: number): number => numbers.get(field) ?? 0;
  const hint = RESET_HINTS[one(fields.reset_hint)] ?? "unknown";
  const histogram: FloatHistogram = {
    // That there was no reset is found when the sample is read, beside the one before it.
    hint: hint === "not_reset" ? "unknown" : hint,
    schema: one(fields.schema),
    zero_threshold: one(fields.zero_threshold),
    zero_count: numbers.get(fields.zero_count_float) ?? one(fields.zero_count_int),
    count: numbers.get(fields.count_float) ?? one(fields.count_int),
    sum: one(fields.sum),
    positive: sideOf(positive),
    negative: sideOf(negative),
    bounds,
  };
  const timestamp = one(fields.timestamp);
  if (isStale(histogram.sum)) return { timestamp, ended: true, histogram };
  return { timestamp, ended: false, histogram: checked(histogram) };
}

function checked(histogram: FloatHistogram): FloatHistogram {
  const { schema } = histogram;
  const isFine = Number.isInteger(schema) && schema > MOST_SCHEMA && schema <= FINEST_SCHEMA;
  const kept = isFine ? atSchema(histogram, MOST_SCHEMA) : histogram;
  const problem = histogramProblem(kept);
  if (problem !== undefined) throw new RangeError(`a native histogram cannot be stored: ${problem}`);
  return kept;
}

/** A histogram of at most so many buckets and bounds: with coarser buckets if need be. Throws RangeError. */
export function fitted(histogram: FloatHistogram, most: number): FloatHistogram {
  const size = ({ positive, negative, bounds }: FloatHistogram): number =>
    positive.counts.length + negative.counts.length + bounds.length;
  let fit = histogram;
  while (size(fit) > most && fit.schema !== CUSTOM_SCHEMA && fit.schema > COARSEST_SCHEMA)
    fit = atSchema(fit, fit.schema - 1);
  if (size(fit) <= most) return fit;
  throw new RangeError(
    `a native histogram has ${size(fit)} buckets and bounds; the limit histogram_buckets is ${most}`,
  );
}

/** Whole counts come as differences to the bucket before. */
function sideOf({ spans, deltas, counts }: Side): Buckets {
  if (deltas.length === 0) return bucketsOf(spans, counts);
  let count = 0;
  return bucketsOf(
    spans,
    deltas.map((delta) => {
      count += delta;
      return count;
    }),
  );
}

const DOUBLE = 1;
const PACKED = 2;

function readNumber(from: WireReader, tag: number, end: number, fields: HistogramFields): number {
  const field = tag >>> 3;
  if ((tag & 7) === DOUBLE) return readDouble(from, end);
  if (tag % 8 !== 0) {
    from.skip(tag, end);
    return 0;
  }
  if (field === fields.schema) return zigzag(from);
  return field === fields.timestamp ? from.int64() : from.varint();
}

function zigzag(from: WireReader): number {
  const coded = from.varint();
  return coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2;
}

function readDouble(from: WireReader, end: number): number {
  if (from.at + 8 > end) throw new BadWire("a number is cut short", from.at);
  from.at += 8;
  return from.view.getFloat64(from.at - 8, true);
}

function readDoubles(from: WireReader, tag: number, end: number, into: number[]): void {
  if ((tag & 7) !== PACKED) {
    into.push(readDouble(from, end));
    return;
  }
  const to = from.lengthEnd(end);
  while (from.at < to) into.push(readDouble(from, to));
}

function readSide(from: WireReader, tag: number, end: number, fields: HistogramFields, into: Side): void {
  const field = tag >>> 3;
  if (field === fields.positive_counts || field === fields.negative_counts) readDoubles(from, tag, end, into.counts);
  else if (field === fields.positive_spans || field === fields.negative_spans) into.spans.push(readSpan(from, end));
  else if ((tag & 7) !== PACKED) into.deltas.push(zigzag(from));
  else {
    const to = from.lengthEnd(end);
    while (from.at < to) into.deltas.push(zigzag(from));
  }
}

const SPAN_OFFSET = 0x08;
const SPAN_LENGTH = 0x10;

function readSpan(from: WireReader, end: number): Span {
  const span: Span = { offset: 0, length: 0 };
  const to = from.lengthEnd(end);
  while (from.at < to) {
    const tag = from.varint();
    if (tag === SPAN_OFFSET) span.offset = zigzag(from);
    else if (tag === SPAN_LENGTH) span.length = from.varint();
    else from.skip(tag, to);
  }
  return span;
}
