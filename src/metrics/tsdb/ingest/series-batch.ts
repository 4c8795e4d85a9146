import type { FloatHistogram } from "../../histogram/histogram.ts";
import type { Labels } from "../../source.ts";
import { encodeLabels } from "../index/labels.ts";
import type { Importer, ImportResult } from "./importer.ts";
import { BadWire, WireReader } from "./protobuf.ts";
import { readLabels } from "./remote-write.ts";

/**
 * Samples of our own senders, in a form that crosses threads as four buffers: sample i is of the series whose
 * labels end at `ends[i]` in `labels` (spelled by `encodeLabels`, and worth keeping by the sender).
 */
export interface SeriesBatch {
  labels: Uint8Array;
  ends: Uint32Array;
  timestamps: Float64Array;
  /** A Float64Array keeps a staleness marker; a plain array of numbers would spoil it. */
  values: Float64Array;
  /** Native histograms, by the number of their sample; its value does not count. */
  natives?: readonly { sample: number; histogram: FloatHistogram }[];
  /** Its series come from others: they count for `series_per_app`. */
  counted?: boolean;
}

export function seriesBatch(samples: readonly { labels: Labels; timestamp: number; value: number }[]): SeriesBatch {
  const encoded = samples.map(({ labels }) => encodeLabels(labels));
  const ends = new Uint32Array(samples.length);
  let end = 0;
  encoded.forEach((bytes, i) => {
    end += bytes.length;
    ends[i] = end;
  });
  return {
    labels: Buffer.concat(encoded),
    ends,
    timestamps: Float64Array.from(samples, ({ timestamp }) => timestamp),
    values: Float64Array.from(samples, ({ value }) => value),
  };
}

/** Throws BadWire when the buffers do not fit together; then nothing was stored. */
export function importSeriesBatch(importer: Importer, batch: SeriesBatch): ImportResult {
  const { ends, timestamps, values } = batch;
  if (timestamps.length < ends.length || values.length < ends.length) {
    throw new BadWire("fewer samples than series", ends.length);
  }
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  const from = new WireReader(batch.labels);
  importer.begin();
  const natives = new Map(batch.natives?.map(({ sample, histogram }) => [sample, histogram]));
  let entry = -1;
  let start = 0;
  for (let i = 0; i < ends.length; i++) {
    const end = ends[i] as number;
    if (end < start || end > batch.labels.length) throw new BadWire("labels end outside their buffer", end);
    const found = findSeries(importer, from, { start, end, own: batch.counted !== true }, entry);
    if (found < 0) importer.refuse();
    else {
      const ref = importer.cache.ref(found);
      const native = natives.get(i);
      if (native) importer.pushNative(ref, timestamps[i] as number, native, {});
      else importer.push(ref, timestamps[i] as number, bits[2 * i] as number, bits[2 * i + 1] as number);
      entry = found;
    }
    start = end;
  }
  return importer.end();
}

interface Key {
  start: number;
  end: number;
  own: boolean;
}

function findSeries(importer: Importer, from: WireReader, { start, end, own }: Key, before: number): number {
  const { cache } = importer;
  const expected = cache.expected(before);
  if (expected >= 0 && cache.length(expected) === end - start && cache.isAt(expected, 0, from.view, start)) {
    return expected;
  }
  const known = cache.find(0, from.view, start, end, before);
  if (known >= 0) return known;
  try {
    const ref = importer.series(readLabels(from, start, end), [], own);
    return ref === undefined ? -1 : cache.add(0, from.view, start, end, ref, before);
  } catch (thrown) {
    importer.reportLabels(thrown, { byte: start });
    return -1;
  }
}
