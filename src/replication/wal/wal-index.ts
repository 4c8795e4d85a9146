/**
 * SQLite's wal-index, the file NAME-shm that every process with the database open has mapped. Reads and writes
 * through a file descriptor see the same memory on a local Linux file system.
 *
 *     0    header: version, change counter, page size, frames, pages, checksum of the log so far, salts, own checksum
 *     48   the same again; both must agree, else a writer is at work
 *     96   how far the log was copied back, the readers' marks, the lock bytes
 *     136  page number of frame 1, 2, … 4062, then at 16384 a hash table of 8192 slots of 16 bits
 *     32768, 65536, …   the same for 4096 frames each, without the header
 *
 * A frame counts only when the header says so: what lies in the log beyond `frames` never happened.
 */
import { readSync, writeSync } from "node:fs";
import { alignedBuffer, type WalCursor, WalSum, wordsOf } from "./frames.ts";

const HEADER_BYTES = 48;
const BOTH_HEADERS_BYTES = 96;
const INDEX_HEADER_BYTES = 136;
const VERSION = 3007000;
/** A writer needs less than a microsecond for both copies; after this many reads it has died. */
const ATTEMPTS = 100;

export interface IndexHeader extends WalCursor {
  change: number;
  /** 0 in a database without a log yet. */
  page_size: number;
  /** How many pages the database has; only meaningful when `frame` is not 0. */
  pages: number;
}

const both = alignedBuffer(BOTH_HEADERS_BYTES);
const bothWords = wordsOf(both);
const written = alignedBuffer(HEADER_BYTES);
const writtenWords = wordsOf(written);
const sum = new WalSum();

/** Undefined without a valid header: a writer died halfway, or no process has opened the WAL yet. */
export function readIndexHeader(fd: number): IndexHeader | undefined {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (readSync(fd, both, 0, BOTH_HEADERS_BYTES, 0) < BOTH_HEADERS_BYTES) return undefined;
    if (both.compare(both, HEADER_BYTES, BOTH_HEADERS_BYTES, 0, HEADER_BYTES) !== 0) continue;
    sum.start(0, 0);
    sum.add(bothWords, 0, 10);
    if (sum.sum0 !== both.readUInt32LE(40) || sum.sum1 !== both.readUInt32LE(44)) continue;
    return both[12] === 0 ? undefined : parseHeader(both);
  }
  return undefined;
}

function parseHeader(bytes: Buffer): IndexHeader {
  const size = bytes.readUInt16LE(14);
  return {
    change: bytes.readUInt32LE(8),
    // 65536 does not fit in 16 bits and is written as 1.
    page_size: (size & 0xfe00) + ((size & 1) << 16),
    frame: bytes.readUInt32LE(16),
    pages: bytes.readUInt32LE(20),
    sum0: bytes.readUInt32LE(24),
    sum1: bytes.readUInt32LE(28),
    // The salts are copied from the WAL, big-endian.
    salt1: bytes.readUInt32BE(32),
    salt2: bytes.readUInt32BE(36),
  };
}

/**
 * Publishes the header. The second copy is written first: readers read the first one first, and require both to be
 * equal.
 */
export function writeIndexHeader(fd: number, header: IndexHeader, between?: () => void): void {
  const bytes = written.fill(0);
  bytes.writeUInt32LE(VERSION, 0);
  bytes.writeUInt32LE(header.change >>> 0, 8);
  bytes[12] = 1;
  bytes.writeUInt16LE((header.page_size & 0xff00) | (header.page_size >>> 16), 14);
  bytes.writeUInt32LE(header.frame, 16);
  bytes.writeUInt32LE(header.pages, 20);
  bytes.writeUInt32LE(header.sum0, 24);
  bytes.writeUInt32LE(header.sum1, 28);
  bytes.writeUInt32BE(header.salt1, 32);
  bytes.writeUInt32BE(header.salt2, 36);
  sum.start(0, 0);
  sum.add(writtenWords, 0, 10);
  bytes.writeUInt32LE(sum.sum0, 40);
  bytes.writeUInt32LE(sum.sum1, 44);
  writeSync(fd, bytes, 0, HEADER_BYTES, HEADER_BYTES);
  between?.();
  writeSync(fd, bytes, 0, HEADER_BYTES, 0);
}

const BLOCK_BYTES = 32768;
const HASH_OFFSET = 16384;
const SLOTS = 8192;
const FIRST_BLOCK_FRAMES = 4062;
const BLOCK_FRAMES = 4096;
/** Above this, one write of the whole table is cheaper than one per slot. */
const SLOTS_WRITTEN_SINGLY = 3;

interface Block {
  number: number;
  /** Frames in the blocks before this one. */
  before: number;
  frames: number;
  /** Where its page numbers begin in the file. */
  numbers_at: number;
}

function blockOf(frame: number): Block {
  if (frame <= FIRST_BLOCK_FRAMES) {
    return { number: 0, before: 0, frames: FIRST_BLOCK_FRAMES, numbers_at: INDEX_HEADER_BYTES };
  }
  const number = 1 + Math.floor((frame - FIRST_BLOCK_FRAMES - 1) / BLOCK_FRAMES);
  const before = FIRST_BLOCK_FRAMES + (number - 1) * BLOCK_FRAMES;
  return { number, before, frames: BLOCK_FRAMES, numbers_at: number * BLOCK_BYTES };
}

/**
 * Adds frames to the index. They become visible when the header is published; unpublished entries are harmless and
 * cleared later.
 */
export class IndexWriter {
  readonly #fd: number;
  readonly #slots = new Uint16Array(SLOTS);
  readonly #slotBytes = Buffer.from(this.#slots.buffer);
  /** The block `#slots` is a copy of. */
  #block = -1;
  /**
   * First free slot by hash. Otherwise pages written by every transaction would be searched behind all their own
   * entries.
   */
  readonly #hints = new Uint16Array(SLOTS);

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Drops cached state, because another process may have written the file. */
  forget(): void {
    this.#block = -1;
  }

  /** Adds the pages of the frames after `frame`. */
  append(frame: number, numbers: readonly number[]): void {
    let done = 0;
    while (done < numbers.length) {
      const first = frame + 1 + done;
      const block = blockOf(first);
      const place = first - block.before;
      this.#open(block, place);
      const part = numbers.slice(done, done + block.frames - place + 1);
      this.#enter(block, place, part);
      done += part.length;
    }
  }

  /** Loads the table of `block`, with only the frames before `place`. */
  #open(block: Block, place: number): void {
    const at = block.number * BLOCK_BYTES;
    if (place === 1 || block.number !== this.#block) for (let hash = 0; hash < SLOTS; hash++) this.#hints[hash] = hash;
    if (place === 1) {
      // A new block, extended to 64 KiB, because some machines map that much at a time.
      const from = block.numbers_at;
      const zeros = Buffer.alloc(at + BLOCK_BYTES - from);
      writeSync(this.#fd, zeros, 0, zeros.length, from);
      if (block.number % 2 === 0) writeSync(this.#fd, Buffer.alloc(1), 0, 1, at + 2 * BLOCK_BYTES - 1);
      this.#slots.fill(0);
    } else if (block.number !== this.#block) {
      readSync(this.#fd, this.#slotBytes, 0, SLOTS * 2, at + HASH_OFFSET);
      this.#clearFrom(at + HASH_OFFSET, place);
    }
    this.#block = block.number;
  }

  /** Clears the slots of unpublished frames. */
  #clearFrom(at: number, place: number): void {
    let stale = false;
    for (let slot = 0; slot < SLOTS; slot++) {
      if ((this.#slots[slot] ?? 0) < place) continue;
      this.#slots[slot] = 0;
      stale = true;
    }
    if (stale) writeSync(this.#fd, this.#slotBytes, 0, SLOTS * 2, at);
  }

  #enter(block: Block, place: number, numbers: readonly number[]): void {
    const bytes = Buffer.allocUnsafe(numbers.length * 4);
    const used: number[] = [];
    for (const [i, number] of numbers.entries()) {
      bytes.writeUInt32LE(number, i * 4);
      const hash = (number * 383) % SLOTS;
      let slot = this.#hints[hash] ?? hash;
      while (this.#slots[slot] !== 0) slot = (slot + 1) % SLOTS;
      this.#hints[hash] = slot;
      this.#slots[slot] = place + i;
      used.push(slot);
    }
    writeSync(this.#fd, bytes, 0, bytes.length, block.numbers_at + (place - 1) * 4);
    const at = block.number * BLOCK_BYTES + HASH_OFFSET;
    if (used.length > SLOTS_WRITTEN_SINGLY) writeSync(this.#fd, this.#slotBytes, 0, SLOTS * 2, at);
    else for (const slot of used) writeSync(this.#fd, this.#slotBytes, slot * 2, 2, at + slot * 2);
  }
}
