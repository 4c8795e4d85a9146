/**
 * Receives a snapshot: pages are written to their places in a file that becomes the database, and their checksums are
 * computed on the way, so that each is written once and not readable until the checksum of all of them is verified.
 */
import { closeSync, fchmodSync, fsyncSync, ftruncateSync, openSync, readSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { syncDirectory, writeAll } from "../durable.ts";
import { type Page, PageTable } from "../ltx/page-table.ts";
import type { Position } from "../position.ts";
import { giveToOwner } from "../prepare-directory.ts";
import { stampAt } from "../wal/files.ts";
import { type PageRun, pagesOf } from "../wal/scan.ts";
import { PersistedState } from "./persisted-state.ts";
import { PositionMismatch } from "./state.ts";

/** The head of a snapshot, which precedes its pages. */
export interface SnapshotHead {
  page_size: number;
  /** Pages of the database. */
  pages: number;
  position: Position;
  timestamp_ms: number;
  /** The transaction at which another file took the database's place; 0: none. What is older is copied aside. */
  replaced_at: number;
}

/** A snapshot that has come whole. */
export interface ReceivedSnapshot extends SnapshotHead {
  path: string;
  table: PageTable;
}

const READ_PAGES = 64;

export class SnapshotFile {
  readonly #path: string;
  readonly #head: SnapshotHead;
  readonly #fd: number;
  readonly #table: PageTable;
  #closed = false;

  /** `known`: checksums of pages that are in the file already. Without it the file begins empty. */
  constructor(path: string, head: SnapshotHead, known?: PageTable) {
    this.#path = path;
    this.#head = head;
    this.#table = known ?? new PageTable(head.page_size);
    if (this.#table.count > head.pages) this.#table.accept(this.#table.change([], head.pages));
    this.#fd = openSync(path, known ? "r+" : "w", 0o600);
  }

  /** Throws `PositionMismatch` for what is not part of this database. */
  write(run: PageRun): void {
    const { page_size, pages } = this.#head;
    const last = run.first + run.data.length / page_size - 1;
    // In order, so that a sender cannot have space allocated for pages that never arrive.
    if (!Number.isInteger(last) || run.first < 1 || run.first > this.#table.count + 1 || last > pages) {
      throw new PositionMismatch(`pages ${run.first} to ${last} are not the next of a snapshot of ${pages}`);
    }
    writeAll(this.#fd, run.data, (run.first - 1) * page_size);
    this.#table.accept(this.#table.change(pagesOf(run, page_size), Math.max(this.#table.count, last)));
  }

  /** Ends it. Throws `PositionMismatch` when a page is missing or wrong. */
  verify(): ReceivedSnapshot {
    const { pages, page_size, position } = this.#head;
    const complete = this.#table.count === pages && this.#table.complete;
    if (!complete || this.#table.checksum !== position.checksum)
      throw new PositionMismatch("the pages of the snapshot do not lead to its checksum");
    ftruncateSync(this.#fd, pages * page_size);
    // Before it becomes the database: closed after SQLite has opened it, this would drop SQLite's locks.
    this.close();
    return { ...this.#head, path: this.#path, table: this.#table };
  }

  close(): void {
    if (!this.#closed) closeSync(this.#fd);
    this.#closed = true;
  }
}

/** Parts of a file of pages, each valid until the next one is read. */
export function* fileRuns(path: string, page_size: number): Generator<PageRun> {
  const fd = openSync(path, "r");
  try {
    const memory = Buffer.allocUnsafeSlow(READ_PAGES * page_size);
    for (let first = 1; ; first += READ_PAGES) {
      const read = readSync(fd, memory, 0, memory.length, (first - 1) * page_size);
      if (read < page_size) return;
      yield { first, data: memory.subarray(0, read - (read % page_size)) };
    }
  } finally {
    closeSync(fd);
  }
}

export function* receivedPages({ path, page_size }: ReceivedSnapshot): Generator<Page[]> {
  for (const run of fileRuns(path, page_size)) yield pagesOf(run, page_size);
}

/**
 * Makes a database that was not there before. What the node knows about it is written first, then the file gets its
 * name, and then a mark says that this file needs not be read to know it.
 */
export function createFromSnapshot(snapshot: ReceivedSnapshot, path: string, dir: string): void {
  for (const end of ["-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
  rmSync(join(dir, "log"), { recursive: true, force: true });
  const { position, table } = snapshot;
  const state = new PersistedState(dir);
  state.noteReplacement(snapshot.replaced_at);
  state.saveTable({ position, table, cursor: undefined, files: undefined });
  const fd = openSync(snapshot.path, "r+");
  try {
    fchmodSync(fd, 0o644);
    giveToOwner(snapshot.path, path);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(snapshot.path, path);
  syncDirectory(dirname(path));
  state.saveMark({ position, stamp: stampAt(path), once: true });
}
