import type { FloatHistogram } from "../../histogram/histogram.ts";
import { histogramAt, putHistogram } from "../../nan-bits.ts";
import type { Columns } from "../../source.ts";
import { ByteReader, type ByteWriter, DamagedBytes } from "../bytes.ts";
import { dropHistograms } from "./drop-histograms.ts";
import { putHistogramBytes, readHistogram } from "./histograms.ts";
import { putTimes, readTimes, TIMES } from "./times.ts";
import { chooseCoding, putValues, readValues, VALUES } from "./values.ts";

/**
 * One run of samples of one series:
 *
 *     varint count · 1 byte: value kind (bits 0-1), has specials (2), has histograms (3), time kind (4-5)
 *     · times · values · histograms, where the values are NaNs that refer to one
 *
 * Every double comes back with the bits it had. A chunk knows no labels and no absolute time: `base_ms` is
 * the caller's, so that a chunk's first timestamp is a small number.
 */
const SPECIALS = 4;
const HISTOGRAMS = 8;

/** Samples in one chunk. More are cut into several: decoding one sample means decoding its chunk. */
export const CHUNK_SAMPLES = 480;

/** Appends samples [from, to) to `out` and answers the exponent, a good guess for the series' next chunk. */
export function encodeChunk(
  out: ByteWriter,
  samples: Columns,
  from: number,
  to: number,
  base_ms: number,
  likely_exponent = 0,
): number {
  const { timestamps } = samples;
  const histograms = histogramsOf(samples, from, to);
  const values = histograms.length > 0 ? withoutNumbers(samples.values) : samples.values;
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  const coding = chooseCoding(values, bits, from, to, likely_exponent);
  out.reserve(64 + (to - from) * 18 + coding.specials * 18);
  out.varint(to - from);
  const head = out.at++;
  const times = putTimes(out.bytes, out.at, timestamps, from, to, base_ms);
  const has = (coding.specials > 0 ? SPECIALS : 0) | (histograms.length > 0 ? HISTOGRAMS : 0);
  out.bytes[head] = coding.kind | has | (times.kind << 4);
  out.at = putValues(out.bytes, times.at, coding, values, bits, from, to);
  for (const [i, histogram] of histograms.entries()) putHistogramBytes(out, histogram, histograms[i - 1]);
  return coding.exponent;
}

/** The native histograms of samples [from, to), in their order. */
function histogramsOf({ values, histograms }: Columns, from: number, to: number): FloatHistogram[] {
  const found: FloatHistogram[] = [];
  if (!histograms || histograms.length === 0) return found;
  for (let i = from; i < to; i++) {
    const histogram = histograms.at(values, i);
    if (histogram) found.push(histogram);
  }
  return found;
}

/** All refer to the same: the numbers of histograms mean nothing outside their table. */
function withoutNumbers(values: Float64Array): Float64Array {
  const copy = new Float64Array(values);
  for (let i = 0; i < copy.length; i++) if (histogramAt(values, i) !== undefined) putHistogram(copy, i, 0);
  return copy;
}

/** Appends the chunk at `at` to `into`, which grows as needed. Throws DamagedBytes, never reads past the end. */
export function decodeChunk(bytes: Uint8Array, at: number, base_ms: number, into: Columns): void {
  const from = new ByteReader(bytes, at);
  const count = from.varint();
  const head = from.byte();
  const times = (head >> 4) & 3;
  if (count === 0 || count > CHUNK_SAMPLES || times > TIMES.dense) throw new DamagedBytes("not a chunk");
  growColumns(into, into.length + count);
  if (!readTimes(from, times, count, into.timestamps, into.length, base_ms)) into.unsure = true;
  readValues(from, head & VALUES.planes, (head & SPECIALS) !== 0, count, into.values, into.length);
  const first = into.length;
  into.length += count;
  if ((head & HISTOGRAMS) !== 0) readHistograms(from, into, first);
}

/** Refers to the histograms behind the values, or leaves their samples out where nobody asks for them. */
function readHistograms(from: ByteReader, into: Columns, first: number): void {
  let before: FloatHistogram | undefined;
  for (let i = first; i < into.length; i++) {
    if (histogramAt(into.values, i) === undefined) continue;
    before = readHistogram(from, before);
    into.histograms?.put(into.values, i, before);
  }
  if (!into.histograms) dropHistograms(into, first);
}

export function newColumns(capacity = 512): Columns {
  return { timestamps: new Float64Array(capacity), values: new Float64Array(capacity), length: 0 };
}

export function growColumns(columns: Columns, needed: number): void {
  if (columns.timestamps.length >= needed && columns.values.length >= needed) return;
  const capacity = Math.max(needed, columns.timestamps.length * 2);
  columns.timestamps = grown(columns.timestamps, capacity);
  columns.values = grown(columns.values, capacity);
}

/** A copy by bytes, so that every NaN keeps its payload. */
function grown(column: Float64Array, capacity: number): Float64Array {
  const larger = new Float64Array(capacity);
  new Uint8Array(larger.buffer).set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
  return larger;
}
