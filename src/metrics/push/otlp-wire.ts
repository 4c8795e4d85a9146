/** Reads OTLP's protobuf into the objects that its JSON has. */
import { BadWire, WireReader } from "../tsdb/ingest/protobuf.ts";
import type { OtlpRequest } from "./otlp.ts";

type Kind = "text" | "double" | "fixed" | "sfixed" | "int" | "sint" | "flag" | "doubles" | "fixeds" | "ints" | Shape;
/** Field by number: its name in JSON, its kind, and whether it is repeated. */
type Shape = { readonly [number: number]: readonly [name: string, kind: Kind, repeated?: true] };

const ANY: { [number: number]: readonly [string, Kind, true?] } = {
  1: ["stringValue", "text"],
  2: ["boolValue", "flag"],
  3: ["intValue", "int"],
  4: ["doubleValue", "double"],
};
const ATTRIBUTE: Shape = { 1: ["key", "text"], 2: ["value", ANY] };
const NUMBER: Shape = {
  3: ["timeUnixNano", "fixed"],
  4: ["asDouble", "double"],
  6: ["asInt", "sfixed"],
  7: ["attributes", ATTRIBUTE, true],
  8: ["flags", "int"],
};
const HISTOGRAM: Shape = {
  3: ["timeUnixNano", "fixed"],
  4: ["count", "fixed"],
  5: ["sum", "double"],
  6: ["bucketCounts", "fixeds"],
  7: ["explicitBounds", "doubles"],
  9: ["attributes", ATTRIBUTE, true],
  10: ["flags", "int"],
};
const BUCKETS: Shape = { 1: ["offset", "sint"], 2: ["bucketCounts", "ints"] };
const EXPONENTIAL: Shape = {
  1: ["attributes", ATTRIBUTE, true],
  3: ["timeUnixNano", "fixed"],
  4: ["count", "fixed"],
  5: ["sum", "double"],
  6: ["scale", "sint"],
  7: ["zeroCount", "fixed"],
  8: ["positive", BUCKETS],
  9: ["negative", BUCKETS],
  10: ["flags", "int"],
  14: ["zeroThreshold", "double"],
};
const SUMMARY: Shape = {
  3: ["timeUnixNano", "fixed"],
  4: ["count", "fixed"],
  5: ["sum", "double"],
  6: ["quantileValues", { 1: ["quantile", "double"], 2: ["value", "double"] }, true],
  7: ["attributes", ATTRIBUTE, true],
  8: ["flags", "int"],
};
const points = (shape: Shape): Shape => ({
  1: ["dataPoints", shape, true],
  2: ["aggregationTemporality", "int"],
  3: ["isMonotonic", "flag"],
});
const METRIC: Shape = {
  1: ["name", "text"],
  3: ["unit", "text"],
  5: ["gauge", points(NUMBER)],
  7: ["sum", points(NUMBER)],
  9: ["histogram", points(HISTOGRAM)],
  10: ["exponentialHistogram", points(EXPONENTIAL)],
  11: ["summary", points(SUMMARY)],
};
const REQUEST: Shape = {
  1: [
    "resourceMetrics",
    {
      1: ["resource", { 1: ["attributes", ATTRIBUTE, true] }],
      2: ["scopeMetrics", { 2: ["metrics", METRIC, true] }, true],
    },
    true,
  ],
};

/** Throws BadWire when the body is no such message. */
export function decodeOtlp(body: Uint8Array): OtlpRequest {
  return readMessage(new WireReader(body), body.length, REQUEST) as OtlpRequest;
}

/** Messages of these shapes are not nested deeper than the shapes are. */
function readMessage(from: WireReader, end: number, shape: Shape): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  while (from.at < end) {
    const tag = from.varint();
    const field = shape[Math.floor(tag / 8)];
    if (!field) {
      from.skip(tag, end);
      continue;
    }
    const [name, kind, repeated] = field;
    const value = readField(from, tag, end, kind);
    if (repeated || Array.isArray(value)) message[name] = appended(message[name] as unknown[] | undefined, value);
    else message[name] = value;
  }
  return message;
}

/** The same list, longer: a copy for each element would take quadratic time. */
function appended(list: unknown[] | undefined, value: unknown): unknown[] {
  const longer = list ?? [];
  if (!Array.isArray(value)) longer.push(value);
  else for (const one of value as unknown[]) longer.push(one);
  return longer;
}

function readField(from: WireReader, tag: number, end: number, kind: Kind): unknown {
  if (typeof kind === "object") {
    if ((tag & 7) !== 2) throw new BadWire("a message was expected", from.at);
    const to = from.lengthEnd(end);
    const message = readMessage(from, to, kind);
    from.at = to;
    return message;
  }
  switch (kind) {
    case "text":
      return from.text(end);
    case "int":
      return from.int64();
    case "sint":
      return zigzag(from.varint());
    case "ints":
      return varints(from, tag, end);
    case "flag":
      return from.varint() !== 0;
    case "double":
      return eight(from, end, (at) => from.view.getFloat64(at, true));
    case "fixed":
      return eight(from, end, (at) => from.view.getBigUint64(at, true));
    case "sfixed":
      return eight(from, end, (at) => from.view.getBigInt64(at, true));
    case "doubles":
      return packed(from, tag, end, (at) => from.view.getFloat64(at, true));
    case "fixeds":
      return packed(from, tag, end, (at) => from.view.getBigUint64(at, true));
  }
}

function eight<T>(from: WireReader, end: number, read: (at: number) => T): T {
  if (from.at + 8 > end) throw new BadWire("a number is cut short", from.at);
  const value = read(from.at);
  from.at += 8;
  return value;
}

const zigzag = (coded: number): number => (coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2);

function varints(from: WireReader, tag: number, end: number): number[] {
  if ((tag & 7) === 0) return [from.varint()];
  const to = from.lengthEnd(end);
  const values: number[] = [];
  while (from.at < to) values.push(from.varint());
  return values;
}

function packed<T>(from: WireReader, tag: number, end: number, read: (at: number) => T): T[] {
  if ((tag & 7) === 1) return [eight(from, end, read)];
  const to = from.lengthEnd(end);
  const values: T[] = [];
  while (from.at < to) values.push(eight(from, to, read));
  return values;
}
