import { assert } from "#core/assert.ts";
import type { FloatHistogram } from "../../histogram/histogram.ts";
import { histogramId, isHistogram } from "../../nan-bits.ts";
import type { Labels } from "../../source.ts";
import { ByteReader, ByteWriter, DamagedBytes, putVarint, putZigzag } from "../bytes.ts";
import { putHistogramBytes, readHistogram } from "../chunk/histograms.ts";
import type { Batch } from "../head.ts";

/**
 * One append in the log:
 *
 *     definitions · varint sample count · zigzag first time · 1 byte: do all share it · samples
 *     definitions: varint count · (varint series · varint pairs · texts)*
 *     sample: zigzag series - (series before + 1) · [zigzag time - time before] · value
 *     value: varint 0 and 8 bytes, or 1 + zigzag of the whole difference to the series' value before
 *     a native histogram: varint 0, the 8 bytes of NATIVE, and itself
 *
 * A series is defined, and its first value written in full, in each segment that speaks of it. So a segment
 * can be read without any other, and goes when its own samples are in blocks. That leaves two or three bytes
 * a sample; packing them further saves a third of the log and costs more memory than that is worth.
 */
const NATIVE = { low: 0x4853_4948, high: 0x7ff0_0000 };
const LARGEST_DIFFERENCE = 2 ** 40;

/** What a segment has said so far; the reader builds the same while it reads. */
export class SegmentState {
  #values = new Float64Array(256);
  #segment = new Uint32Array(256);
  /** Set with a new segment: everything said before is forgotten without touching it. */
  number = 1;

  knows(ref: number): boolean {
    return this.#segment[ref] === this.number;
  }

  value(ref: number): number {
    return this.#values[ref] as number;
  }

  set(ref: number, value: number): void {
    if (ref >= this.#values.length) this.#grow(ref + 1);
    this.#segment[ref] = this.number;
    this.#values[ref] = value;
  }

  #grow(needed: number): void {
    const size = Math.max(needed, this.#values.length * 2);
    const values = new Float64Array(size);
    values.set(this.#values);
    this.#values = values;
    const segment = new Uint32Array(size);
    segment.set(this.#segment);
    this.#segment = segment;
  }
}

const out = new ByteWriter(1 << 16);
const fresh: number[] = [];

/** Good until the next one is made. */
export interface EncodedRecord {
  record: Uint8Array;
  /** How many of its bytes define series. */
  definitions: number;
}

/** The record of a batch. `state` is changed by it: a record that is not written ends its segment. */
export function encodeRecord(batch: Batch, labels: (ref: number) => Labels, state: SegmentState): EncodedRecord {
  out.reset();
  putDefinitions(batch, labels, state);
  const definitions = out.at;
  const { refs, timestamps, values, bits, length } = batch;
  const first = timestamps[0] as number;
  let shared = true;
  for (let i = 1; i < length && shared; i++) shared = timestamps[i] === first;
  out.varint(length);
  out.zigzag(first);
  out.byte(shared ? 1 : 0);
  out.reserve(length * 26);
  const hasNatives = (batch.histograms?.length ?? 0) > 0;
  let { bytes, at } = out;
  let ref = -1;
  let time = first;
  for (let i = 0; i < length; i++) {
    const next = refs[i] as number;
    at = putZigzag(bytes, at, next - ref - 1);
    ref = next;
    if (!shared) {
      at = putZigzag(bytes, at, (timestamps[i] as number) - time);
      time = timestamps[i] as number;
    }
    if (hasNatives && isHistogram(bits[2 * i] as number, bits[2 * i + 1] as number)) {
      out.at = at;
      putNative(batch, i);
      out.reserve((length - i) * 26);
      ({ bytes, at } = out);
    } else at = putValue(bytes, at, values[i] as number, state.value(ref), bits, i);
    state.set(ref, values[i] as number);
  }
  out.at = at;
  return { record: out.view(), definitions };
}

function putNative({ histograms, bits }: Batch, i: number): void {
  const histogram = histograms?.get(histogramId(bits[2 * i] as number));
  assert(histogram, "a sample's histogram is in its batch");
  out.byte(0);
  for (const word of [NATIVE.low, NATIVE.high]) for (let k = 0; k < 4; k++) out.byte((word >>> (8 * k)) & 255);
  putHistogramBytes(out, histogram);
}

function putDefinitions(batch: Batch, labels: (ref: number) => Labels, state: SegmentState): void {
  fresh.length = 0;
  for (let i = 0; i < batch.length; i++) {
    const ref = batch.refs[i] as number;
    if (state.knows(ref)) continue;
    // NaN differs from everything by NaN, so the first value is written in full.
    state.set(ref, Number.NaN);
    fresh.push(ref);
  }
  out.varint(fresh.length);
  for (const ref of fresh) {
    const pairs = labels(ref);
    out.varint(ref);
    out.varint(pairs.length / 2);
    for (const text of pairs) out.text(text);
  }
}

function putValue(
  bytes: Uint8Array,
  at: number,
  value: number,
  before: number,
  bits: Uint32Array,
  index: number,
): number {
  const difference = value - before;
  const small = difference < LARGEST_DIFFERENCE && difference > -LARGEST_DIFFERENCE;
  // -0 would come back as 0, so zero is only said by difference when the sum is the same zero.
  if (small && Math.floor(difference) === difference && Object.is(before + difference, value)) {
    return putVarint(bytes, at, 1 + (difference >= 0 ? difference * 2 : -difference * 2 - 1));
  }
  bytes[at] = 0;
  for (let k = 0; k < 8; k++) bytes[at + 1 + k] = (bits[2 * index + (k >> 2)] as number) >>> (8 * (k & 3));
  return at + 9;
}

/** Called for each sample of a record, with the value's two 32-bit words. */
export interface RecordSink {
  define(ref: number, labels: Labels): void;
  sample(ref: number, time: number, low: number, high: number): void;
  native(ref: number, time: number, histogram: FloatHistogram): void;
}

const scratch = new Float64Array(1);
const halves = new Uint32Array(scratch.buffer);

/** Throws DamagedBytes when the record is not one; then what was read of it before counts as not written. */
export function decodeRecord(record: Uint8Array, state: SegmentState, sink: RecordSink): void {
  const from = new ByteReader(record);
  for (let definitions = from.varint(); definitions > 0; definitions--) {
    const ref = from.varint();
    const pairs = from.varint();
    if (ref > 0xffff_fffe || pairs > record.length) throw new DamagedBytes("an impossible definition");
    const labels: string[] = [];
    for (let i = 0; i < pairs * 2; i++) labels.push(from.text());
    state.set(ref, Number.NaN);
    sink.define(ref, labels);
  }
  const samples = from.varint();
  let time = from.zigzag();
  const shared = from.byte() === 1;
  let ref = -1;
  for (let i = 0; i < samples; i++) {
    ref += from.zigzag() + 1;
    if (!shared) time += from.zigzag();
    if (!state.knows(ref)) throw new DamagedBytes("a sample of an undefined series");
    readValue(from, state.value(ref));
    const low = halves[0] as number;
    const high = halves[1] as number;
    if (low === NATIVE.low && high === NATIVE.high) sink.native(ref, time, readHistogram(from));
    else sink.sample(ref, time, low, high);
    state.set(ref, scratch[0] as number);
  }
}

function readValue(from: ByteReader, before: number): void {
  const coded = from.varint();
  if (coded > 0) {
    const zigzag = coded - 1;
    scratch[0] = before + (zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2);
    return;
  }
  halves[0] = from.word();
  halves[1] = from.word();
}
