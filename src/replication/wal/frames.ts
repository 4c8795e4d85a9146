/**
 * SQLite's write-ahead log: a header of 32 bytes, then frames of 24 bytes and a page. Each frame carries the
 * checksum of everything before it, so a log can be cut anywhere and the valid part is known.
 * A frame whose `commit` is not zero ends a transaction.
 */
import type { Page } from "../ltx/page-table.ts";

export const WAL_HEADER_BYTES = 32;
export const FRAME_HEADER_BYTES = 24;

/** Checksums over little-endian 32-bit words; big-endian machines write another magic. */
const MAGIC_LITTLE_ENDIAN = 0x377f0682;
const VERSION = 3007000;

/** A position in one WAL generation: after `frame` frames, with the running checksum. */
export interface WalCursor {
  salt1: number;
  salt2: number;
  frame: number;
  sum0: number;
  sum1: number;
}

export function sameGeneration(a: Pick<WalCursor, "salt1" | "salt2">, b: Pick<WalCursor, "salt1" | "salt2">): boolean {
  return a.salt1 === b.salt1 && a.salt2 === b.salt2;
}

export function frameOffset(frame: number, page_size: number): number {
  return WAL_HEADER_BYTES + (frame - 1) * (FRAME_HEADER_BYTES + page_size);
}

/** The running checksum of SQLite's WAL, over pairs of little-endian words. */
export class WalSum {
  sum0 = 0;
  sum1 = 0;

  start(sum0: number, sum1: number): void {
    this.sum0 = sum0;
    this.sum1 = sum1;
  }

  add(words: Int32Array, from: number, to: number): void {
    let a = this.sum0 | 0;
    let b = this.sum1 | 0;
    // 32-bit integer arithmetic; floating point would be five times slower.
    for (let i = from; i < to; i += 2) {
      a = (a + (words[i] as number)) | 0;
      a = (a + b) | 0;
      b = (b + (words[i + 1] as number)) | 0;
      b = (b + a) | 0;
    }
    this.sum0 = a >>> 0;
    this.sum1 = b >>> 0;
  }
}

/** The 32-bit words of a buffer that starts at a multiple of four. */
export function wordsOf(bytes: Buffer): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
}

/** An 8-byte aligned buffer, unlike Node's pooled ones. Uninitialized. */
export function alignedBuffer(length: number): Buffer {
  return Buffer.allocUnsafeSlow(length);
}

/** The header of a generation, and the cursor after it. */
export function walHeader(page_size: number, sequence: number, salt1: number, salt2: number): [Buffer, WalCursor] {
  const bytes = alignedBuffer(WAL_HEADER_BYTES);
  const fields = [MAGIC_LITTLE_ENDIAN, VERSION, page_size, sequence, salt1, salt2];
  for (const [i, field] of fields.entries()) bytes.writeUInt32BE(field >>> 0, i * 4);
  const sum = new WalSum();
  sum.add(wordsOf(bytes), 0, 6);
  bytes.writeUInt32BE(sum.sum0, 24);
  bytes.writeUInt32BE(sum.sum1, 28);
  return [bytes, { salt1, salt2, frame: 0, sum0: sum.sum0, sum1: sum.sum1 }];
}

/** The cursor after a valid header in our byte order, or undefined. */
export function readWalHeader(bytes: Buffer): WalCursor | undefined {
  if (bytes.length < WAL_HEADER_BYTES || bytes.readUInt32BE(0) !== MAGIC_LITTLE_ENDIAN) return undefined;
  const sum = new WalSum();
  sum.add(wordsOf(bytes), 0, 6);
  const { sum0, sum1 } = sum;
  if (bytes.readUInt32BE(24) !== sum0 || bytes.readUInt32BE(28) !== sum1) return undefined;
  return { salt1: bytes.readUInt32BE(16), salt2: bytes.readUInt32BE(20), frame: 0, sum0, sum1 };
}

const running = new WalSum();

/** Size of the frames of this many pages. */
export function framesBytes(pages: number, page_size: number): number {
  return pages * (FRAME_HEADER_BYTES + page_size);
}

/** Encodes the frames of one transaction at `start` of `bytes`, a multiple of eight, and advances `cursor`. */
export function encodeFrames(
  pages: readonly Page[],
  commit: number,
  page_size: number,
  cursor: WalCursor,
  bytes: Buffer,
  start: number,
): void {
  const size = FRAME_HEADER_BYTES + page_size;
  const words = wordsOf(bytes);
  running.start(cursor.sum0, cursor.sum1);
  for (const [i, { number, data }] of pages.entries()) {
    const at = start + i * size;
    bytes.writeUInt32BE(number, at);
    bytes.writeUInt32BE(i === pages.length - 1 ? commit : 0, at + 4);
    bytes.writeUInt32BE(cursor.salt1, at + 8);
    bytes.writeUInt32BE(cursor.salt2, at + 12);
    data.copy(bytes, at + FRAME_HEADER_BYTES);
    running.add(words, at >>> 2, (at >>> 2) + 2);
    running.add(words, (at + FRAME_HEADER_BYTES) >>> 2, (at + size) >>> 2);
    bytes.writeUInt32BE(running.sum0, at + 16);
    bytes.writeUInt32BE(running.sum1, at + 20);
  }
  cursor.frame += pages.length;
  cursor.sum0 = running.sum0;
  cursor.sum1 = running.sum1;
}

/** A decoded frame. `data` is a view into the read buffer. */
export interface Frame extends Page {
  commit: number;
}

/**
 * Decodes the frame at `at` and advances the cursor. Undefined when it belongs to another generation or its checksum is
 * wrong.
 */
export function decodeFrame(
  bytes: Buffer,
  words: Int32Array,
  at: number,
  page_size: number,
  cursor: WalCursor,
): Frame | undefined {
  if (bytes.readUInt32BE(at + 8) !== cursor.salt1 || bytes.readUInt32BE(at + 12) !== cursor.salt2) return undefined;
  const end = at + FRAME_HEADER_BYTES + page_size;
  running.start(cursor.sum0, cursor.sum1);
  running.add(words, at >>> 2, (at >>> 2) + 2);
  running.add(words, (at + FRAME_HEADER_BYTES) >>> 2, end >>> 2);
  const { sum0, sum1 } = running;
  if (bytes.readUInt32BE(at + 16) !== sum0 || bytes.readUInt32BE(at + 20) !== sum1) return undefined;
  cursor.frame++;
  cursor.sum0 = sum0;
  cursor.sum1 = sum1;
  const data = bytes.subarray(at + FRAME_HEADER_BYTES, end);
  return { number: bytes.readUInt32BE(at), commit: bytes.readUInt32BE(at + 4), data };
}
