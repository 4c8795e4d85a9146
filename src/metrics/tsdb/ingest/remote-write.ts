import type { Labels } from "../../source.ts";
import type { Importer, ImportResult } from "./importer.ts";
import { readNative } from "./native-histogram.ts";
import { BadWire, WireReader } from "./protobuf.ts";
import { BadSnappy, SnappyDecoder } from "./snappy-decode.ts";

/** Fields of the messages of remote write 0.1.0, as tags: number × 8 + wire type. */
const SERIES = 0x0a;
const LABEL = 0x0a;
const SAMPLE = 0x12;
const HISTOGRAM = 0x22;
const NAME = 0x0a;
const VALUE = 0x12;
const SAMPLE_VALUE = 0x09;
const SAMPLE_TIME = 0x10;

const NO_LABELS: Labels = [];

/** A snappy-packed WriteRequest. Throws BadWire when it is not one: then nothing of it was stored. */
export function importRemoteWrite(importer: Importer, body: Uint8Array, most_bytes: number): ImportResult {
  return importWriteRequest(importer, unpack(body, most_bytes));
}

/** The size is in the first bytes: looked at before anything is unpacked. */
function unpack(body: Uint8Array, most_bytes: number): Uint8Array {
  try {
    const packed = new SnappyDecoder(body);
    if (packed.size > most_bytes) {
      throw new BadWire(`the body unpacks to ${packed.size} bytes, more than ${most_bytes} (import_bytes)`, 0);
    }
    return packed.unpack();
  } catch (thrown) {
    if (thrown instanceof BadSnappy) throw new BadWire(`the body is not snappy: ${thrown.message}`, 0);
    throw thrown;
  }
}

function importWriteRequest(importer: Importer, bytes: Uint8Array): ImportResult {
  const from = new WireReader(bytes);
  importer.begin();
  let entry = -1;
  while (from.at < bytes.length) {
    const tag = from.varint();
    if (tag === SERIES) entry = readSeries(importer, from, from.lengthEnd(bytes.length), entry);
    else from.skip(tag, bytes.length);
  }
  return importer.end();
}

/** Reads one TimeSeries; answers its place in the key cache, for the prediction of the next. */
function readSeries(importer: Importer, from: WireReader, end: number, before: number): number {
  const { cache } = importer;
  const start = from.at;
  let entry = cache.expected(before);
  // The expected key is here, and no further label follows it: the common case, without looking inside.
  const behind = entry < 0 ? Infinity : start + cache.length(entry);
  if (behind <= end && from.bytes[behind] !== LABEL && cache.isAt(entry, 0, from.view, start)) {
    from.at = behind;
  } else {
    while (from.at < end && from.bytes[from.at] === LABEL) {
      from.at++;
      from.at = from.lengthEnd(end);
    }
    entry = cache.find(0, from.view, start, from.at, before);
    if (entry < 0) entry = learn(importer, from, start, from.at, before);
  }
  readSamples(importer, from, end, entry < 0 ? -1 : cache.ref(entry));
  return entry < 0 ? before : entry;
}

function learn(importer: Importer, from: WireReader, start: number, end: number, before: number): number {
  try {
    const pairs = readLabels(new WireReader(from.bytes), start, end);
    const ref = importer.series(pairs, NO_LABELS);
    return ref === undefined ? -1 : importer.cache.add(0, from.view, start, end, ref, before);
  } catch (thrown) {
    importer.reportLabels(thrown, { byte: start });
    return -1;
  }
}

/** The labels between two places. */
export function readLabels(from: WireReader, start: number, end: number): [string, string][] {
  const pairs: [string, string][] = [];
  from.at = start;
  while (from.at < end) {
    if (from.varint() !== LABEL) throw new BadWire("a label was expected", from.at);
    const to = from.lengthEnd(end);
    let name = "";
    let value = "";
    while (from.at < to) {
      const tag = from.varint();
      if (tag === NAME) name = from.text(to);
      else if (tag === VALUE) value = from.text(to);
      else from.skip(tag, to);
    }
    pairs.push([name, value]);
  }
  return pairs;
}

function readSamples(importer: Importer, from: WireReader, end: number, ref: number): void {
  while (from.at < end) {
    const tag = from.varint();
    if (tag === SAMPLE) readSample(importer, from, from.lengthEnd(end), ref);
    else if (tag === HISTOGRAM) readHistogram(importer, from, from.lengthEnd(end), ref);
    else if (tag === LABEL) throw new BadWire("a label after the samples of its series", from.at);
    else from.skip(tag, end);
  }
}

function readHistogram(importer: Importer, from: WireReader, end: number, ref: number): void {
  const place = { byte: from.at };
  try {
    const { timestamp, ended, histogram } = readNative(from, end);
    if (ref < 0) importer.refuse();
    else if (ended) importer.pushEnd(ref, timestamp);
    else importer.pushNative(ref, timestamp, histogram, place);
  } catch (thrown) {
    importer.refuse();
    importer.reportNative(thrown, place);
    from.at = end;
  }
}

function readSample(importer: Importer, from: WireReader, end: number, ref: number): void {
  let low = 0;
  let high = 0;
  let time = 0;
  while (from.at < end) {
    const tag = from.varint();
    if (tag === SAMPLE_VALUE && from.at + 8 <= end) {
      low = from.view.getUint32(from.at, true);
      high = from.view.getUint32(from.at + 4, true);
      from.at += 8;
    } else if (tag === SAMPLE_TIME) time = from.int64();
    else from.skip(tag, end);
  }
  if (ref < 0) importer.refuse();
  else importer.push(ref, time, low, high);
}
