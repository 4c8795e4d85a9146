/** Remote write 2.0: `io.prometheus.write.v2.Request`, whose series refer to a table of texts. */
import { isStale } from "../source.ts";
import { type NativeSample, readNative } from "../tsdb/ingest/native-histogram.ts";
import { BadWire, WireReader } from "../tsdb/ingest/protobuf.ts";
import { type OwnLabels, PushedSamples } from "./samples.ts";

const SYMBOLS = 0x22;
const TIMESERIES = 0x2a;
const LABEL_REFS = 0x0a;
const LABEL_REF = 0x08;
const SAMPLES = 0x12;
const HISTOGRAMS = 0x1a;
const EXEMPLARS = 0x22;
const VALUE = 0x09;
const TIMESTAMP = 0x10;

export interface Decoded {
  samples: PushedSamples;
  /** Exemplars, which are not stored. */
  left_out: number;
}

export interface Part {
  start: number;
  end: number;
}

/** Throws BadWire when the body is no such request. */
export function decodeRemoteWrite2(body: Uint8Array, own?: OwnLabels): Decoded {
  const from = new WireReader(body);
  const symbols: string[] = [];
  const parts: Part[] = [];
  while (from.at < body.length) {
    const tag = from.varint();
    if (tag === SYMBOLS) symbols.push(from.text(body.length));
    else if (tag === TIMESERIES) parts.push(partOf(from, body.length));
    else from.skip(tag, body.length);
  }
  const decoded: Decoded = { samples: new PushedSamples(own), left_out: 0 };
  for (const part of parts) readSeries(from, part, symbols, decoded);
  return decoded;
}

function readSeries(from: WireReader, part: Part, symbols: readonly string[], decoded: Decoded): void {
  const { refs, left_out, ...found } = readFields(from, part);
  decoded.left_out += left_out;
  addSamples(from, labelsOf(refs, symbols, part.start), found, decoded.samples);
}

/** Samples of a series, passed over. */
export interface SampleParts {
  samples: Part[];
  histograms: Part[];
}

export function addSamples(
  from: WireReader,
  labels: Readonly<Record<string, string>>,
  { samples, histograms }: SampleParts,
  into: PushedSamples,
): void {
  const add = into.series(labels);
  for (const one of samples) {
    const { timestamp, value } = readSample(from, one);
    if (isStale(value)) into.ended(labels, timestamp);
    else add(timestamp, value);
  }
  const addNative = into.natives(labels);
  for (const { start, end } of histograms) {
    from.at = start;
    const { timestamp, ended, histogram } = nativeAt(from, end);
    if (ended) into.ended(labels, timestamp);
    else addNative(timestamp, histogram);
  }
}

function nativeAt(from: WireReader, end: number): NativeSample {
  try {
    return readNative(from, end);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new BadWire(thrown.message, from.at);
  }
}

interface SeriesFields extends SampleParts {
  refs: number[];
  left_out: number;
}

/** The fields of one series, in whatever order they come. */
function readFields(from: WireReader, { start, end }: Part): SeriesFields {
  const refs: number[] = [];
  const samples: Part[] = [];
  const histograms: Part[] = [];
  let left_out = 0;
  from.at = start;
  while (from.at < end) {
    const tag = from.varint();
    if (tag === LABEL_REF) refs.push(from.varint());
    else if (tag === LABEL_REFS) readPacked(from, from.lengthEnd(end), refs);
    else if (tag === SAMPLES) samples.push(partOf(from, end));
    else if (tag === HISTOGRAMS) histograms.push(partOf(from, end));
    else {
      left_out += tag === EXEMPLARS ? 1 : 0;
      from.skip(tag, end);
    }
  }
  return { refs, samples, histograms, left_out };
}

function readPacked(from: WireReader, end: number, into: number[]): void {
  while (from.at < end) into.push(from.varint());
}

/** A length-prefixed field, passed over. */
export function partOf(from: WireReader, most: number): Part {
  const end = from.lengthEnd(most);
  const start = from.at;
  from.at = end;
  return { start, end };
}

function labelsOf(refs: readonly number[], symbols: readonly string[], at: number): Record<string, string> {
  if (refs.length % 2 !== 0) throw new BadWire("a label has a name and no value", at);
  const labels: Record<string, string> = {};
  for (let i = 0; i < refs.length; i += 2) {
    const name = symbols[refs[i] as number];
    const value = symbols[refs[i + 1] as number];
    if (name === undefined || value === undefined) throw new BadWire("a label refers to a text that is not there", at);
    labels[name] = value;
  }
  if ((labels["__name__"] ?? "") === "") throw new BadWire("a series has no name", at);
  return labels;
}

function readSample(from: WireReader, { start, end }: Part): { timestamp: number; value: number } {
  let value = 0;
  let timestamp = 0;
  from.at = start;
  while (from.at < end) {
    const tag = from.varint();
    if (tag === VALUE && from.at + 8 <= end) {
      value = from.view.getFloat64(from.at, true);
      from.at += 8;
    } else if (tag === TIMESTAMP) timestamp = from.int64();
    else from.skip(tag, end);
  }
  return { timestamp, value };
}
