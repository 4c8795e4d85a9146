import { isUtf8 } from "node:buffer";

/** A body that is not what its format says, with the byte where that shows. */
export class BadWire extends Error {
  override readonly name = "BadWire";
  readonly at: number;

  constructor(message: string, at: number) {
    super(`${message} (at byte ${at})`);
    this.at = at;
  }
}

/** The wire types of protobuf that still occur. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

/** A cursor over protobuf bytes. Everything is checked against the end; nothing is copied. */
export class WireReader {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Up to 2^53 exactly; larger numbers, which are negative ones here, come out large. */
  varint(): number {
    const { bytes } = this;
    let byte = bytes[this.at++] as number;
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let scale = 128; ; scale *= 128) {
      byte = bytes[this.at++] as number;
      if (byte === undefined) throw new BadWire("a number is cut short", this.at - 1);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      if (scale > 2 ** 63) throw new BadWire("a number is too long", this.at);
    }
  }

  /** A 64-bit whole number that may be negative: two's complement in ten bytes. */
  int64(): number {
    const value = this.varint();
    return value >= 2 ** 63 ? Number(BigInt.asIntN(64, this.#bigint())) : value;
  }

  /** The end of a length-prefixed field that begins here, within `end`. */
  lengthEnd(end: number): number {
    const length = this.varint();
    const to = this.at + length;
    if (!(to <= end)) throw new BadWire("a field reaches past its end", this.at);
    return to;
  }

  skip(tag: number, end: number): void {
    switch (tag & 7) {
      case VARINT:
        this.varint();
        break;
      case FIXED64:
        this.at += 8;
        break;
      case LENGTH:
        this.at = this.lengthEnd(end);
        break;
      case FIXED32:
        this.at += 4;
        break;
      default:
        throw new BadWire(`wire type ${tag & 7} is not known`, this.at);
    }
    if (this.at > end) throw new BadWire("a field reaches past its end", this.at);
  }

  text(end: number): string {
    const to = this.lengthEnd(end);
    const slice = Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.at, to - this.at);
    if (!isUtf8(slice)) throw new BadWire("a text is not UTF-8", this.at);
    this.at = to;
    return slice.toString("utf8");
  }

  /** The varint just read, again, without rounding. */
  #bigint(): bigint {
    let start = this.at - 1;
    while (start > 0 && (this.bytes[start - 1] as number) > 127) start--;
    let value = 0n;
    for (let i = this.at - 1; i >= start; i--) value = (value << 7n) | BigInt((this.bytes[i] as number) & 127);
    return value;
  }
}
