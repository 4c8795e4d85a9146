/**
 * Appends transactions to a database's own log, as SQLite itself would, while this process holds SQLite's write
 * lock. Readers in any process go on reading what they see and find the new state at their next transaction.
 *
 * `stage` prepares, `publish` writes: frames into the log, then their entries in the index, then the header that
 * makes them count. A crash before that last step leaves nothing behind that anybody reads.
 */
import { randomInt } from "node:crypto";
import type { Page } from "../ltx/page-table.ts";
import type { DatabaseFiles } from "./files.ts";
import {
  alignedBuffer,
  encodeFrames,
  frameOffset,
  framesBytes,
  WAL_HEADER_BYTES,
  type WalCursor,
  walHeader,
} from "./frames.ts";
import { type IndexHeader, IndexWriter, writeIndexHeader } from "./wal-index.ts";

/** Points between which a crash must be harmless; tests stop the process there. */
export type Step =
  | "logged"
  | "wal-header"
  | "half-frames"
  | "frames"
  | "index"
  | "half-header"
  | "published"
  | "unlocked"
  | "truncated"
  | "relocked";

const MEMORY_BYTES = 256 * 1024;

export class WalWriter {
  readonly #files: DatabaseFiles;
  readonly #page_size: number;
  readonly #index: IndexWriter;
  readonly #step: (step: Step) => void;
  /** Whether a test observes the steps. */
  readonly #watched: boolean;
  #header: IndexHeader;
  #cursor: WalCursor;
  /** Reused memory for staged frames. */
  #memory = alignedBuffer(MEMORY_BYTES);
  #staged_bytes = 0;
  #numbers: number[] = [];
  #pages: number;
  #sequence: number;

  constructor(files: DatabaseFiles, page_size: number, header: IndexHeader, step?: (step: Step) => void) {
    this.#files = files;
    this.#page_size = page_size;
    this.#index = new IndexWriter(files.index);
    this.#header = header;
    this.#cursor = { ...header };
    this.#pages = header.pages;
    this.#sequence = files.walSequence();
    this.#step = step ?? (() => undefined);
    this.#watched = step !== undefined;
  }

  /** How many frames the log has. */
  get frame(): number {
    return this.#header.frame;
  }

  /** The index header when this process last wrote it, to detect other writers. */
  get header(): Readonly<IndexHeader> {
    return this.#header;
  }

  /** Stages one transaction and returns its end in the WAL. `commit` 0: more of it follows. */
  stage(pages: readonly Page[], commit: number): WalCursor {
    if (this.#cursor.frame === 0) this.#beginGeneration();
    const more = framesBytes(pages.length, this.#page_size);
    this.#makeRoom(more);
    encodeFrames(pages, commit, this.#page_size, this.#cursor, this.#memory, this.#staged_bytes);
    this.#staged_bytes += more;
    for (const { number } of pages) this.#numbers.push(number);
    if (commit > 0) this.#pages = commit;
    const { salt1, salt2, frame, sum0, sum1 } = this.#cursor;
    return { salt1, salt2, frame, sum0, sum1 };
  }

  /** Writes staged frames without committing them, for transactions that do not fit in memory. */
  flush(): void {
    const done = this.#cursor.frame - this.#numbers.length;
    this.#writeFrames(this.#memory.subarray(0, this.#staged_bytes), done);
    this.#index.append(done, this.#numbers);
    this.#step("index");
    this.#staged_bytes = 0;
    this.#numbers = [];
    // Releases the memory of one large transaction.
    if (this.#memory.length > MEMORY_BYTES) this.#memory = alignedBuffer(MEMORY_BYTES);
  }

  publish(): void {
    this.flush();
    const { salt1, salt2, frame, sum0, sum1 } = this.#cursor;
    const header: IndexHeader = {
      salt1,
      salt2,
      frame,
      sum0,
      sum1,
      page_size: this.#page_size,
      pages: this.#pages,
      change: (this.#header.change + 1) >>> 0,
    };
    writeIndexHeader(this.#files.index, header, () => this.#step("half-header"));
    this.#header = header;
    this.#step("published");
  }

  #makeRoom(bytes: number): void {
    const needed = this.#staged_bytes + bytes;
    if (needed <= this.#memory.length) return;
    const larger = alignedBuffer(Math.max(needed, this.#memory.length * 2));
    this.#memory.copy(larger, 0, 0, this.#staged_bytes);
    this.#memory = larger;
  }

  #writeFrames(bytes: Buffer, after: number): void {
    const at = frameOffset(after + 1, this.#page_size);
    // In two halves when a test observes that a crash between them is harmless.
    const half = this.#watched ? bytes.length >>> 1 : 0;
    this.#files.writeWal(bytes.subarray(0, half), at);
    this.#step("half-frames");
    this.#files.writeWal(bytes.subarray(half), at + half);
    this.#step("frames");
  }

  #beginGeneration(): void {
    this.#sequence++;
    const salt1 = (this.#cursor.salt1 + 1) >>> 0;
    const [bytes, cursor] = walHeader(this.#page_size, this.#sequence, salt1, randomInt(2 ** 32));
    this.#files.writeWal(bytes.subarray(0, WAL_HEADER_BYTES), 0);
    this.#cursor = cursor;
    this.#index.forget();
    this.#step("wal-header");
  }
}
