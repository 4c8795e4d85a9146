import type { Columns } from "../../source.ts";
import { ByteReader, type ByteWriter, DamagedBytes } from "../bytes.ts";
import { putTimes, readTimes, TIMES } from "./times.ts";
import { chooseCoding, putValues, readValues, VALUES } from "./values.ts";

/**
 * One run of samples of one series:
 *
 *     varint count · 1 byte: value kind (bits 0-1), has specials (2), time kind (4-5) · times · values
 *
 * Every double comes back with the bits it had. A chunk knows no labels and no absolute time: `base_ms` is
 * the caller's, so that a chunk's first timestamp is a small number.
 */
const SPECIALS = 4;

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
  const { timestamps, values } = samples;
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  const coding = chooseCoding(values, bits, from, to, likely_exponent);
  out.reserve(64 + (to - from) * 18 + coding.specials * 18);
  out.varint(to - from);
  const head = out.at++;
  const times = putTimes(out.bytes, out.at, timestamps, from, to, base_ms);
  out.bytes[head] = coding.kind | (coding.specials > 0 ? SPECIALS : 0) | (times.kind << 4);
  out.at = putValues(out.bytes, times.at, coding, values, bits, from, to);
  return coding.exponent;
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
  into.length += count;
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
