import { withHint } from "../../histogram/histogram.ts";
import { formatLabel } from "../../promql/numbers.ts";
import type { Labels } from "../../source.ts";
import type { ExpositionOptions } from "./exposition.ts";
import type { Importer, ImportResult } from "./importer.ts";
import { CLIENT_FIELDS, readNative } from "./native-histogram.ts";
import { BadWire, WireReader } from "./protobuf.ts";

/** The exposition format that has native histograms: messages MetricFamily, each after its length. */

const FAMILY = { name: 0x0a, help: 0x12, type: 0x18, metric: 0x22, unit: 0x2a } as const;
const METRIC = {
  label: 0x0a,
  gauge: 0x12,
  counter: 0x1a,
  summary: 0x22,
  untyped: 0x2a,
  time: 0x30,
  histogram: 0x3a,
} as const;
const TYPES = ["counter", "gauge", "summary", "untyped", "histogram", "gaugehistogram"];

interface Part {
  start: number;
  end: number;
}

interface Family {
  name: string;
  type: string;
}

/** Reads and stores a response. Throws BadWire when it is none: then nothing of it was stored. */
export function importMetricFamilies(importer: Importer, bytes: Uint8Array, options: ExpositionOptions): ImportResult {
  const from = new WireReader(bytes);
  importer.begin();
  while (from.at < bytes.length) new FamilyReader(importer, from, options).read(from.lengthEnd(bytes.length));
  if (options.target !== undefined) importer.markMissing(options.target, options.timestamp_ms);
  return importer.end();
}

class FamilyReader {
  readonly #importer: Importer;
  readonly #from: WireReader;
  readonly #options: ExpositionOptions;
  readonly #added: Labels;
  readonly #family: Family = { name: "", type: "counter" };
  #labels: [string, string][] = [];
  #time = 0;

  constructor(importer: Importer, from: WireReader, options: ExpositionOptions) {
    this.#importer = importer;
    this.#from = from;
    this.#options = options;
    this.#added = options.labels ?? [];
  }

  /** The name and type may come behind the metrics. */
  read(end: number): void {
    const from = this.#from;
    const texts = { help: "", unit: "" };
    const metrics: Part[] = [];
    while (from.at < end) {
      const tag = from.varint();
      if (tag === FAMILY.name) this.#family.name = from.text(end);
      else if (tag === FAMILY.type) this.#family.type = TYPES[from.varint()] ?? "untyped";
      else if (tag === FAMILY.help) texts.help = from.text(end);
      else if (tag === FAMILY.unit) texts.unit = from.text(end);
      else if (tag === FAMILY.metric) metrics.push(partOf(from, end));
      else from.skip(tag, end);
    }
    this.#tell(texts);
    for (const metric of metrics) this.#readMetric(metric);
    from.at = end;
  }

  #tell({ help, unit }: { help: string; unit: string }): void {
    const { onMetadata } = this.#options;
    const { name, type } = this.#family;
    onMetadata?.(name, "type", type);
    if (help !== "") onMetadata?.(name, "help", help);
    if (unit !== "") onMetadata?.(name, "unit", unit);
  }

  #readMetric({ start, end }: Part): void {
    const from = this.#from;
    const values: { tag: number; part: Part }[] = [];
    this.#labels = [];
    this.#time = this.#options.timestamp_ms;
    from.at = start;
    while (from.at < end) {
      const tag = from.varint();
      if (tag === METRIC.label) this.#labels.push(readLabel(from, from.lengthEnd(end)));
      else if (tag === METRIC.time) this.#time = from.int64();
      else if ((tag & 7) === 2) values.push({ tag, part: partOf(from, end) });
      else from.skip(tag, end);
    }
    for (const { tag, part } of values) this.#readValue(tag, part);
  }

  #readValue(tag: number, part: Part): void {
    if (tag === METRIC.histogram) this.#readHistogram(part);
    else if (tag === METRIC.summary) this.#readSummary(part);
    else if (tag === METRIC.gauge || tag === METRIC.counter || tag === METRIC.untyped)
      this.#push("", readFields(this.#from, part).doubles.get(1) ?? 0);
  }

  #readSummary(part: Part): void {
    const { doubles, wholes, parts } = readFields(this.#from, part);
    for (const one of parts.get(3) ?? []) {
      const quantile = readFields(this.#from, one).doubles;
      this.#push("", quantile.get(2) ?? 0, ["quantile", formatLabel(quantile.get(1) ?? 0)]);
    }
    this.#push("_count", wholes.get(1) ?? 0);
    this.#push("_sum", doubles.get(2) ?? 0);
  }

  /** A native histogram where there is one, else the classic buckets. */
  #readHistogram(part: Part): void {
    const { doubles, wholes, parts } = readFields(this.#from, part);
    const isNative =
      parts.has(CLIENT_FIELDS.positive_spans) ||
      parts.has(CLIENT_FIELDS.negative_spans) ||
      (doubles.get(CLIENT_FIELDS.zero_threshold) ?? 0) > 0 ||
      (wholes.get(CLIENT_FIELDS.zero_count_int) ?? 0) > 0;
    if (isNative) {
      this.#readNative(part);
      return;
    }
    const count = doubles.get(CLIENT_FIELDS.count_float) ?? wholes.get(CLIENT_FIELDS.count_int) ?? 0;
    const bounds = (parts.get(3) ?? []).map((one) => {
      const bucket = readFields(this.#from, one);
      const below = bucket.doubles.get(4) ?? bucket.wholes.get(1) ?? 0;
      return { bound: bucket.doubles.get(2) ?? 0, below };
    });
    if (bounds.at(-1)?.bound !== Number.POSITIVE_INFINITY)
      bounds.push({ bound: Number.POSITIVE_INFINITY, below: count });
    for (const { bound, below } of bounds) this.#push("_bucket", below, ["le", formatLabel(bound)]);
    this.#push("_count", count);
    this.#push("_sum", doubles.get(CLIENT_FIELDS.sum) ?? 0);
  }

  #readNative({ start, end }: Part): void {
    const place = { byte: start };
    try {
      this.#from.at = start;
      const { histogram } = readNative(this.#from, end, CLIENT_FIELDS);
      const ref = this.#series("", undefined);
      const isGauge = this.#family.type === "gaugehistogram";
      if (ref === undefined) this.#importer.refuse();
      else this.#importer.pushNative(ref, this.#time, isGauge ? withHint(histogram, "gauge") : histogram, place);
    } catch (thrown) {
      this.#importer.refuse();
      this.#importer.reportNative(thrown, place);
    }
  }

  #push(suffix: string, value: number, label?: [string, string]): void {
    const ref = this.#series(suffix, label);
    scratch[0] = value;
    if (ref === undefined) this.#importer.refuse();
    else this.#importer.push(ref, this.#time, halves[0] as number, halves[1] as number);
  }

  #series(suffix: string, label: [string, string] | undefined): number | undefined {
    const name: [string, string] = ["__name__", this.#family.name + suffix];
    try {
      return this.#importer.series([name, ...this.#labels, ...(label ? [label] : [])], this.#added);
    } catch (thrown) {
      this.#importer.reportLabels(thrown, { byte: this.#from.at });
      return undefined;
    }
  }
}

const scratch = new Float64Array(1);
const halves = new Uint32Array(scratch.buffer);

/** A length-prefixed field, passed over. */
function partOf(from: WireReader, most: number): Part {
  const end = from.lengthEnd(most);
  const start = from.at;
  from.at = end;
  return { start, end };
}

function readLabel(from: WireReader, end: number): [string, string] {
  const pair: [string, string] = ["", ""];
  while (from.at < end) {
    const tag = from.varint();
    if (tag === 0x0a) pair[0] = from.text(end);
    else if (tag === 0x12) pair[1] = from.text(end);
    else from.skip(tag, end);
  }
  return pair;
}

interface Fields {
  doubles: Map<number, number>;
  wholes: Map<number, number>;
  parts: Map<number, Part[]>;
}

/** The fields of a message by their numbers. */
function readFields(from: WireReader, { start, end }: Part): Fields {
  const fields: Fields = { doubles: new Map(), wholes: new Map(), parts: new Map() };
  from.at = start;
  while (from.at < end) {
    const tag = from.varint();
    const field = tag >>> 3;
    if ((tag & 7) === 0) fields.wholes.set(field, from.varint());
    else if ((tag & 7) === 2) fields.parts.set(field, [...(fields.parts.get(field) ?? []), partOf(from, end)]);
    else if ((tag & 7) === 1) {
      if (from.at + 8 > end) throw new BadWire("a number is cut short", from.at);
      fields.doubles.set(field, from.view.getFloat64(from.at, true));
      from.at += 8;
    } else from.skip(tag, end);
  }
  return fields;
}
