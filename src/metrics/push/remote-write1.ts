/**
 * Remote write 1.0 of a machine, whose labels are added. The engine reads that of other senders by itself, without
 * this detour through texts.
 */
import { BadWire, WireReader } from "../tsdb/ingest/protobuf.ts";
import { addSamples, type Decoded, type Part, partOf, type SampleParts } from "./remote-write2.ts";
import { type OwnLabels, PushedSamples } from "./samples.ts";

const TIMESERIES = 0x0a;
const LABELS = 0x0a;
const SAMPLES = 0x12;
const EXEMPLARS = 0x1a;
const HISTOGRAMS = 0x22;
const NAME = 0x0a;
const VALUE = 0x12;

/** Throws BadWire when the body is no such request. */
export function decodeRemoteWrite1(body: Uint8Array, own: OwnLabels): Decoded {
  const from = new WireReader(body);
  const decoded: Decoded = { samples: new PushedSamples(own), left_out: 0 };
  while (from.at < body.length) {
    const tag = from.varint();
    if (tag !== TIMESERIES) from.skip(tag, body.length);
    else {
      const part = partOf(from, body.length);
      readSeries(from, part, decoded);
      from.at = part.end;
    }
  }
  return decoded;
}

function readSeries(from: WireReader, { start, end }: Part, decoded: Decoded): void {
  const labels: Record<string, string> = {};
  const found: SampleParts = { samples: [], histograms: [] };
  from.at = start;
  while (from.at < end) {
    const tag = from.varint();
    if (tag === LABELS) readLabel(from, partOf(from, end), labels);
    else if (tag === SAMPLES) found.samples.push(partOf(from, end));
    else if (tag === HISTOGRAMS) found.histograms.push(partOf(from, end));
    else {
      decoded.left_out += tag === EXEMPLARS ? 1 : 0;
      from.skip(tag, end);
    }
  }
  if ((labels["__name__"] ?? "") === "") throw new BadWire("a series has no name", start);
  addSamples(from, labels, found, decoded.samples);
}

function readLabel(from: WireReader, { start, end }: Part, into: Record<string, string>): void {
  let [name, value] = ["", ""];
  from.at = start;
  while (from.at < end) {
    const tag = from.varint();
    if (tag === NAME) name = from.text(end);
    else if (tag === VALUE) value = from.text(end);
    else from.skip(tag, end);
  }
  into[name] = value;
}
