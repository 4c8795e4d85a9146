/** Writes the few kinds of protobuf fields that OTLP needs: log lines and spans of requests. */

/** Bytes of a message, collected in parts. */
export type Field = readonly Buffer[];

export const bytes = (number: number, content: Buffer): Field => [
  varint((number << 3) | 2),
  varint(content.length),
  content,
];

export const text = (number: number, content: string): Field =>
  content === "" ? [] : bytes(number, Buffer.from(content));

export const message = (number: number, ...fields: readonly Field[]): Field =>
  bytes(number, Buffer.concat(fields.flat()));

export const integer = (number: number, value: number): Field => [varint(number << 3), varint(value)];

export function fixed64(number: number, value: bigint): Field {
  const content = Buffer.allocUnsafe(8);
  content.writeBigUInt64LE(value);
  return [varint((number << 3) | 1), content];
}

function varint(value: number): Buffer {
  const parts: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) parts.push((rest % 0x80) | 0x80);
  return Buffer.from([...parts, rest]);
}

/** The fields of a message: numbers, or bytes. Throws when it is none. */
export function* readFields(content: Buffer): Generator<{ number: number; value: number | Buffer }> {
  for (let at = 0; at < content.length; ) {
    const tag = readVarint(content, at);
    const [number, kind] = [Math.floor(tag.value / 8), tag.value % 8];
    const { value, end } = kind === 0 || kind === 2 ? readVarint(content, tag.end) : { value: 0, end: tag.end };
    at = end + (kind === 0 ? 0 : kind === 2 ? value : (FIXED[kind] ?? Infinity));
    if (at > content.length) throw new Error("not protobuf");
    yield { number, value: kind === 0 ? value : content.subarray(end, at) };
  }
}

/** Sizes of fields of the kinds that have one. */
const FIXED: Record<number, number> = { 1: 8, 5: 4 };
/** More is not a whole number in JavaScript. */
const MOST_FACTOR = 2 ** 42;

function readVarint(content: Buffer, from: number): { value: number; end: number } {
  let value = 0;
  for (let end = from, factor = 1; factor <= MOST_FACTOR; factor *= 0x80) {
    const byte = content[end++];
    if (byte === undefined) break;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return { value, end };
  }
  throw new Error("not protobuf");
}
