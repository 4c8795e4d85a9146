import { textOf } from "./text-cache.ts";

/**
 * Varints over plain bytes. Numbers are whole and at most 2^53 in size: more than 32-bit shifts reach, so the
 * common small ones take a short way and the rest go by division.
 */

const HALF = 0x4000_0000;

/** Writes a whole number ≥ 0 at `at`, returns the place behind it. The caller made room: at most 8 bytes. */
export function putVarint(bytes: Uint8Array, at: number, value: number): number {
  let p = at;
  let rest = value;
  while (rest > HALF) {
    bytes[p++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  while (rest > 127) {
    bytes[p++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  bytes[p++] = rest;
  return p;
}

/** Small numbers of either sign stay small: 0, -1, 1, -2 … become 0, 1, 2, 3 … */
export function putZigzag(bytes: Uint8Array, at: number, value: number): number {
  return putVarint(bytes, at, value >= 0 ? value * 2 : -value * 2 - 1);
}

export function unzigzag(coded: number): number {
  if (coded < 0x8000_0000) return (coded >>> 1) ^ -(coded & 1);
  return coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2;
}

/** Bytes that grow while they are written; used again after `reset`. */
export class ByteWriter {
  bytes: Uint8Array<ArrayBuffer>;
  at = 0;

  constructor(size = 256) {
    this.bytes = new Uint8Array(size);
  }

  reset(): void {
    this.at = 0;
  }

  reserve(more: number): void {
    const needed = this.at + more;
    if (needed <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.at++] = value;
  }

  varint(value: number): void {
    this.reserve(9);
    this.at = putVarint(this.bytes, this.at, value);
  }

  zigzag(value: number): void {
    this.reserve(9);
    this.at = putZigzag(this.bytes, this.at, value);
  }

  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Length, then UTF-8. */
  text(value: string): void {
    const encoded = Buffer.from(value, "utf8");
    this.varint(encoded.length);
    this.raw(encoded);
  }

  /** What was written, without a copy: good until the next write. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.at);
  }
}

/** Bytes that ended early or say something impossible. */
export class DamagedBytes extends Error {
  override readonly name = "DamagedBytes";
}

/** Reads what ByteWriter wrote; anything that does not fit throws DamagedBytes. */
export class ByteReader {
  readonly bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  get done(): boolean {
    return this.at >= this.bytes.length;
  }

  byte(): number {
    const value = this.bytes[this.at++];
    if (value === undefined) throw new DamagedBytes("the bytes end too early");
    return value;
  }

  varint(): number {
    let byte = this.byte();
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = this.byte();
      value += (byte & 127) * scale;
      if (scale > Number.MAX_SAFE_INTEGER) throw new DamagedBytes("a number is too large");
    }
    return value;
  }

  zigzag(): number {
    return unzigzag(this.varint());
  }

  /** 32 bits, the lowest first. */
  word(): number {
    return (this.byte() | (this.byte() << 8) | (this.byte() << 16) | (this.byte() << 24)) >>> 0;
  }

  raw(count: number): Uint8Array {
    if (this.at + count > this.bytes.length) throw new DamagedBytes("the bytes end too early");
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  text(): string {
    const length = this.varint();
    const start = this.at;
    if (start + length > this.bytes.length) throw new DamagedBytes("the bytes end too early");
    this.at += length;
    return textOf(this.bytes, start, this.at);
  }
}
