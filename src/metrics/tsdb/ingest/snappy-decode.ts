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
/** Behind the unpacked bytes, so that copies may go in steps of four. */
const SLACK_BYTES = 4;
/** Maximum size of the reused buffer; a larger body gets memory of its own. */
const KEPT_BYTES = 4 * 1024 * 1024;
let buffer = new Uint8Array(1 << 16);

export class SnappyDecoder {
  readonly #packed: Uint8Array;
  #at = 0;
  readonly size: number;

  /** Reads the size that the sender claims; the caller checks it before unpacking. */
  constructor(packed: Uint8Array) {
    this.#packed = packed;
    this.size = this.#readSize();
  }

  /** Good until the next call, of any instance. */
  unpack(): Uint8Array {
    const out = memory(this.size + SLACK_BYTES);
    const view = new DataView(out.buffer);
    const packed = this.#packed;
    let to = 0;
    while (this.#at < packed.length) {
      const tag = packed[this.#at++] as number;
      to = (tag & 3) === 0 ? this.#literal(tag, out, to) : this.#copy(tag, out, view, to);
    }
    if (this.#at > packed.length) throw new BadSnappy("it ends too early");
    if (to !== this.size) throw new BadSnappy("it unpacks to less than it says");
    return out.subarray(0, this.size);
  }

  #literal(tag: number, out: Uint8Array, to: number): number {
    const packed = this.#packed;
    let length = (tag >> 2) + 1;
    // 61 to 64 mean that the length stands in the next one to four bytes.
    if (length > 60) length = this.#number(length - 60) + 1;
    const from = this.#at;
    const end = from + length;
    if (end > packed.length || to + length > this.size) throw new BadSnappy("a literal reaches past the end");
    if (length > CALL_BYTES) out.set(packed.subarray(from, end), to);
    else for (let i = 0; i < length; i++) out[to + i] = packed[from + i] as number;
    this.#at = end;
    return to + length;
  }

  #copy(tag: number, out: Uint8Array, view: DataView, to: number): number {
    const kind = tag & 3;
    const length = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
    const back = this.#distance(tag, kind);
    if (!(back > 0 && back <= to) || to + length > this.size) throw new BadSnappy("a copy reaches outside");
    const from = to - back;
    // Source and target may overlap: then the run repeats itself, which copying forwards does. Four bytes at a
    // time may write a little too far, into what the next element overwrites or into the slack.
    if (back >= 4) for (let i = 0; i < length; i += 4) view.setInt32(to + i, view.getInt32(from + i, true), true);
    else for (let i = 0; i < length; i++) out[to + i] = out[from + i] as number;
    return to + length;
  }

  #distance(tag: number, kind: number): number {
    const packed = this.#packed;
    const at = this.#at;
    if (kind === 1) {
      this.#at = at + 1;
      return ((tag >> 5) << 8) | (packed[at] as number);
    }
    if (kind === 3) return this.#number(4);
    this.#at = at + 2;
    return (packed[at] as number) | ((packed[at + 1] as number) << 8);
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

function memory(size: number): Uint8Array<ArrayBuffer> {
  if (size <= buffer.length) return buffer;
  const fresh = new Uint8Array(size);
  if (size <= KEPT_BYTES) buffer = fresh;
  return fresh;
}
