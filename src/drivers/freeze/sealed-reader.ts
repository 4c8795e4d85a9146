/** Reads the files of a sealed snapshot. Only authentic bytes are handed out. */
import { fstatSync, readSync } from "node:fs";
import { opener, TAG_BYTES } from "./opener.ts";
import { FIRST_PIECE_BYTES, keyOf, nonceOf, type SealedMemory, sealedBytes } from "./sealed-memory.ts";

export const WRONG_LENGTH = "the sealed memory has another length";

/** The bytes of a sealed file. */
export interface SealedBytes {
  size: number;
  /** Valid until the next call. */
  read(at: number, length: number): Buffer;
}

/** Reads an open file on the calling thread. */
export function sealedFile(fd: number): SealedBytes {
  let room = Buffer.alloc(0);
  return {
    size: fstatSync(fd).size,
    read(at, length) {
      if (room.length < length) room = Buffer.allocUnsafe(length);
      for (let done = 0; done < length; ) {
        const read = readSync(fd, room, done, length - done, at + done);
        if (read === 0) throw new Error("the sealed memory is too short");
        done += read;
      }
      return room.subarray(0, length);
    },
  };
}

export class SealedReader {
  readonly #sealed: SealedBytes;
  readonly #key: Uint8Array;
  readonly #piece_bytes: number;
  readonly #names: readonly string[];
  /** Where each file begins in the concatenated files; the last number is where all end. */
  readonly #starts: readonly number[];
  readonly #bytes: number;
  #room = Buffer.alloc(0);
  /** The pieces that are in `#room`: small reads ask for one again and again. */
  #held = { from: 0, to: 0 };

  /** Throws when the sealed file is not as long as its files. */
  constructor(sealed: SealedBytes, platform_key: Uint8Array, memory: SealedMemory) {
    const { salt, files, piece_bytes } = memory;
    if (sealed.size !== sealedBytes(memory)) throw new Error(WRONG_LENGTH);
    this.#key = keyOf(platform_key, salt);
    this.#piece_bytes = piece_bytes ?? FIRST_PIECE_BYTES;
    this.#names = Object.keys(files);
    let end = 0;
    this.#starts = [0, ...Object.values(files).map((length) => (end += length))];
    this.#bytes = end;
    this.#sealed = sealed;
  }

  /** Place of a file in the list of files. */
  find(name: string): number | undefined {
    const at = this.#names.indexOf(name);
    return at < 0 ? undefined : at;
  }

  length(file: number): number {
    return this.#start(file + 1) - this.#start(file);
  }

  /** The bytes of a file from `offset` on, fewer at its end. Valid until the next call. */
  read(file: number, offset: number, length: number): Buffer {
    const first = this.#start(file) + offset;
    const end = Math.min(first + length, this.#start(file + 1));
    const [from, to] = [Math.floor(first / this.#piece_bytes), Math.ceil(end / this.#piece_bytes)];
    if (first >= end) return this.#room.subarray(0, 0);
    if (from < this.#held.from || to > this.#held.to) this.#open(from, to);
    const begin = this.#held.from * this.#piece_bytes;
    return this.#room.subarray(first - begin, end - begin);
  }

  #start(file: number): number {
    const start = this.#starts[file];
    if (start === undefined) throw new Error(`the sealed memory has no file ${file}`);
    return start;
  }

  /** Where a piece begins in the sealed file; each before it has a tag. */
  #place(piece: number): number {
    return Math.min(piece * this.#piece_bytes, this.#bytes) + piece * TAG_BYTES;
  }

  #open(from: number, to: number): void {
    this.#held = { from: 0, to: 0 };
    const begin = this.#place(from);
    const sealed = this.#sealed.read(begin, this.#place(to) - begin);
    const length = (to - from) * this.#piece_bytes;
    if (this.#room.length < length) this.#room = Buffer.allocUnsafe(length);
    using opens = opener(this.#key);
    for (let piece = from; piece < to; piece++) {
      const body = sealed.subarray(this.#place(piece) - begin, this.#place(piece + 1) - begin);
      if (!opens.open(nonceOf(piece), body, this.#room.subarray((piece - from) * this.#piece_bytes)))
        throw new Error("the sealed memory was changed, or sealed with another key");
    }
    this.#held = { from, to };
  }
}
