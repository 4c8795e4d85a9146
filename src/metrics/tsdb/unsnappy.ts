/**
 * Unpacks snappy's block format (the one remote write uses), into memory that is used again for the next body:
 * senders come every few seconds with a megabyte each, and as fresh garbage that is most of a worker's memory.
 *
 *     varint size · elements
 *     element: tag byte; its low two bits say literal, or a copy of what stands some bytes before
 */
export class BadSnappy extends Error {
  override readonly name = "BadSnappy";
}

/** Shorter runs are copied byte by byte: a call costs more. */
const CALL_BYTES = 32;
/** Kept between bodies at most; a larger body gets memory of its own. */
const KEPT_BYTES = 4 * 1024 * 1024;
let kept = new Uint8Array(1 << 16);

export class Unsnappy {
  readonly #packed: Uint8Array;
  #at = 0;
  readonly size: number;

  /** Reads the size, which is the sender's claim: the caller judges it before unpacking. */
  constructor(packed: Uint8Array) {
    this.#packed = packed;
    this.size = this.#readSize();
  }

  /** Good until the next call, of any instance. */
  unpack(): Uint8Array {
    const out = memory(this.size);
    const { size } = this;
    let to = 0;
    while (this.#at < this.#packed.length) {
      const tag = this.#packed[this.#at++] as number;
      to = (tag & 3) === 0 ? this.#literal(tag, out, to) : this.#copy(tag, out, to);
      if (to > size) throw new BadSnappy("it unpacks to more than it says");
    }
    if (to !== size) throw new BadSnappy("it unpacks to less than it says");
    return out.subarray(0, size);
  }

  #literal(tag: number, out: Uint8Array, to: number): number {
    let length = (tag >> 2) + 1;
    // 60 to 63 mean that the length stands in the next one to four bytes.
    if (length > 60) length = this.#number(length - 60) + 1;
    const from = this.#at;
    const end = from + length;
    if (end > this.#packed.length || to + length > this.size) throw new BadSnappy("a literal reaches past the end");
    if (length > CALL_BYTES) out.set(this.#packed.subarray(from, end), to);
    else for (let i = 0; i < length; i++) out[to + i] = this.#packed[from + i] as number;
    this.#at = end;
    return to + length;
  }

  #copy(tag: number, out: Uint8Array, to: number): number {
    const kind = tag & 3;
    const length = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
    const back = kind === 1 ? ((tag >> 5) << 8) | this.#number(1) : this.#number(kind === 2 ? 2 : 4);
    if (back === 0 || back > to || to + length > this.size) throw new BadSnappy("a copy reaches outside");
    const from = to - back;
    if (length > CALL_BYTES && back >= length) out.copyWithin(to, from, from + length);
    // Source and target may overlap: then the run repeats itself, which copying forwards does.
    else for (let i = 0; i < length; i++) out[to + i] = out[from + i] as number;
    return to + length;
  }

  #number(bytes: number): number {
    let value = 0;
    for (let i = 0; i < bytes; i++) value += (this.#packed[this.#at + i] as number) * 2 ** (8 * i);
    this.#at += bytes;
    if (this.#at > this.#packed.length) throw new BadSnappy("it ends too early");
    return value;
  }

  #readSize(): number {
    let size = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#packed[this.#at++];
      if (byte === undefined) break;
      size += (byte & 127) * 2 ** shift;
      if (byte < 128) return size;
    }
    throw new BadSnappy("it has no size");
  }
}

function memory(size: number): Uint8Array {
  if (size <= kept.length) return kept;
  const fresh = new Uint8Array(size);
  if (size <= KEPT_BYTES) kept = fresh;
  return fresh;
}
