/** Reads the files of a sealed snapshot. Only authentic bytes are handed out. */
import { createDecipheriv } from "node:crypto";
import { fstatSync, readSync } from "node:fs";
import { keyOf, nonceOf, PIECE, pieces, type SealedMemory, TAG_BYTES } from "./sealed-memory.ts";

/**
 * Decrypted pieces that are cached: reads are aligned to memory, not to pieces, so the next read needs the last ones.
 */
const KEPT = 8;

/** The bytes of a sealed file. */
export interface SealedBytes {
  size: number;
  /** Valid until the next call. */
  read(at: number, length: number): Buffer;
}

/** Reads an open file on the calling thread. */
export function sealedFile(fd: number): SealedBytes {
  const body = Buffer.allocUnsafe(PIECE + TAG_BYTES);
  return {
    size: fstatSync(fd).size,
    read(at, length) {
      for (let done = 0; done < length; ) {
        const read = readSync(fd, body, done, length - done, at + done);
        if (read === 0) throw new Error("the sealed memory is too short");
        done += read;
      }
      return body.subarray(0, length);
    },
  };
}

export class SealedReader {
  readonly #sealed: SealedBytes;
  readonly #key: Uint8Array;
  readonly #names: readonly string[];
  /** Where each file begins in the concatenated files; the last number is where all end. */
  readonly #starts: readonly number[];
  /** In the order of use. */
  readonly #cached = new Map<number, Buffer>();

  /** Throws when the sealed file is not as long as its files. */
  constructor(bytes: SealedBytes, platform_key: Uint8Array, { salt, files }: SealedMemory) {
    this.#key = keyOf(platform_key, salt);
    this.#names = Object.keys(files);
    let end = 0;
    this.#starts = [0, ...Object.values(files).map((length) => (end += length))];
    this.#sealed = bytes;
    if (bytes.size !== end + pieces(end) * TAG_BYTES) throw new Error("the sealed memory has another length");
  }

  /** Place of a file in the list of files. */
  find(name: string): number | undefined {
    const at = this.#names.indexOf(name);
    return at < 0 ? undefined : at;
  }

  length(file: number): number {
    return this.#start(file + 1) - this.#start(file);
  }

  /** The bytes of a file from `offset` on, fewer at its end. */
  read(file: number, offset: number, length: number): Buffer[] {
    const [first, last] = [this.#start(file), this.#start(file + 1)];
    const parts: Buffer[] = [];
    const end = Math.min(first + offset + length, last);
    for (let at = first + offset; at < end; at += parts.at(-1)?.length ?? 0) {
      const piece = Math.floor(at / PIECE);
      parts.push(this.#piece(piece).subarray(at - piece * PIECE, end - piece * PIECE));
    }
    return parts;
  }

  #start(file: number): number {
    const start = this.#starts[file];
    if (start === undefined) throw new Error(`the sealed memory has no file ${file}`);
    return start;
  }

  #piece(piece: number): Buffer {
    const plain = this.#cached.get(piece) ?? this.#open(piece);
    this.#cached.delete(piece);
    this.#cached.set(piece, plain);
    const [oldest] = this.#cached.keys();
    if (this.#cached.size > KEPT && oldest !== undefined) this.#cached.delete(oldest);
    return plain;
  }

  /** Returns plaintext only after the tag was verified. */
  #open(piece: number): Buffer {
    const at = piece * PIECE;
    const length = Math.min(PIECE, (this.#starts.at(-1) ?? 0) - at);
    const body = this.#sealed.read(at + piece * TAG_BYTES, length + TAG_BYTES);
    const decipher = createDecipheriv("aes-256-gcm", this.#key, nonceOf(piece), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(body.subarray(length));
    const plain = decipher.update(body.subarray(0, length));
    try {
      decipher.final();
    } catch (cause) {
      throw new Error("the sealed memory was changed, or sealed with another key", { cause });
    }
    return plain;
  }
}
