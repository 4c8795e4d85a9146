/** Whole databases: read from a live one as pages, as a file or as an LTX file; and LTX files read again. */
import { closeSync, openSync, readSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import {
  type ByteSource,
  isSnapshot,
  LtxError,
  type LtxHeader,
  LtxReader,
  LtxWriter,
  type Packing,
} from "../ltx/codec.ts";
import { type Page, PageTable } from "../ltx/page-table.ts";
import type { Position } from "../position.ts";
import { type PageRun, scan, scanRuns } from "../wal/scan.ts";
import type { ReplicatedDatabase } from "./database.ts";
import type { SnapshotHead } from "./received-snapshot.ts";

const PAGES_AT_ONCE = 256;
const READ_BYTES = 1024 * 1024;

/** A consistent view of a database, readable until `close`, during concurrent writes. */
export class Snapshot {
  readonly position: Position;
  readonly timestamp_ms: number;
  readonly #database: ReplicatedDatabase;
  readonly #source: ReplicatedDatabase["source"];
  readonly #reader: DatabaseSync;
  /** Checksums of blocks of pages. */
  readonly blocks: string[];

  private constructor(database: ReplicatedDatabase, reader: DatabaseSync, source: ReplicatedDatabase["source"]) {
    this.#database = database;
    this.#reader = reader;
    this.position = database.position;
    this.timestamp_ms = database.timestamp_ms;
    this.blocks = database.blockSums();
    this.#source = source;
  }

  /** Undefined while an application writes: retry shortly. */
  static take(database: ReplicatedDatabase): Snapshot | undefined {
    let taken: Snapshot | undefined;
    database.whileStill(() => {
      const reader = new DatabaseSync(database.path, { readOnly: true, timeout: 100 });
      taken = new Snapshot(database, reader, readFrom(database, reader));
    });
    return taken;
  }

  get page_size(): number {
    return this.#source.moment.page_size;
  }

  get bytes(): number {
    const { pages, page_size } = this.#source.moment;
    return pages * page_size;
  }

  /** Every page, in batches that are valid until the next one. Throws when the database was closed meanwhile. */
  *#pages(): Generator<Page[]> {
    for (const batch of scan(this.#source.files, this.#source.moment)) {
      yield batch;
      this.mustBeOpen();
    }
  }

  get head(): SnapshotHead {
    const { page_size, pages } = this.#source.moment;
    const { replaced_at } = this.#database;
    return { page_size, pages, position: this.position, timestamp_ms: this.timestamp_ms, replaced_at };
  }

  /** The pages as they are sent, without blocks that the other side has; each run in memory that `memory` gives. */
  *runs(memory: (bytes: number) => Buffer, leaveOut: (page: number) => boolean = () => false): Generator<PageRun> {
    for (const run of scanRuns(this.#source.files, this.#source.moment, { memory, leaveOut })) {
      yield run;
      this.mustBeOpen();
    }
  }

  /** The file may have been deleted, or replaced by another, while this was read. */
  mustBeOpen(): void {
    if (this.#database.closed) throw new Error(`${this.#database.name} was closed while it was read`);
  }

  /** The pieces of an LTX file with the whole database. `timestamp_ms`: that of its last transaction, unless given. */
  *ltx(packing: Packing = "store", timestamp_ms = this.timestamp_ms): Generator<Buffer> {
    const { page_size, pages } = this.#source.moment;
    const { txid, checksum } = this.position;
    const header: LtxHeader = {
      page_size,
      commit: pages,
      min_txid: 1,
      max_txid: txid,
      timestamp_ms,
      pre_checksum: 0n,
      wal_offset: 0,
      wal_size: 0,
      salt1: 0,
      salt2: 0,
      node_id: 0n,
    };
    const writer = new LtxWriter(header, packing);
    yield writer.begin();
    for (const batch of this.#pages()) yield Buffer.concat(batch.map((page) => writer.page(page)));
    yield writer.end(checksum);
  }

  /** The database file in chunks, for /export and for keeping a diverged one. */
  *file(): Generator<Buffer> {
    const { page_size, pages } = this.#source.moment;
    let next = 1;
    for (const batch of this.#pages()) {
      for (const { number, data } of batch) {
        // The lock page is not scanned, but is part of the file.
        if (number > next) yield Buffer.alloc((number - next) * page_size);
        yield Buffer.from(data);
        next = number + 1;
      }
    }
    if (next <= pages) yield Buffer.alloc((pages - next + 1) * page_size);
  }

  close(): void {
    this.#reader.close();
  }
}

/**
 * Starts the read transaction that keeps pages in place, and returns where they are: in the WAL and, for the rest, in
 * the file. When all of the WAL is checkpointed the next writer may restart it: then they are in the file alone.
 */
function readFrom(database: ReplicatedDatabase, reader: DatabaseSync): ReplicatedDatabase["source"] {
  for (;;) {
    const { files, moment } = database.source;
    const copied = files.allCopied({ frame: moment.frames });
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM sqlite_schema").get();
    if (copied) return { files, moment: { ...moment, frames: 0 } };
    if (!files.allCopied({ frame: moment.frames })) return { files, moment };
    // The last part was checkpointed in between, so it is unknown which of the two applies.
    reader.exec("COMMIT");
  }
}

/** The bytes of a file from its start. */
export class FileSource implements ByteSource {
  bytes = Buffer.alloc(0);
  at = 0;
  readonly #fd: number;
  #read_to = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  need(count: number): void {
    if (this.bytes.length - this.at >= count) return;
    const rest = this.bytes.subarray(this.at);
    const more = Buffer.allocUnsafeSlow(rest.length + Math.max(READ_BYTES, count));
    rest.copy(more);
    const read = readSync(this.#fd, more, rest.length, more.length - rest.length, this.#read_to);
    this.#read_to += read;
    this.bytes = more.subarray(0, rest.length + read);
    this.at = 0;
    if (this.bytes.length < count) throw new LtxError("the file ends too early");
  }
}

/** A snapshot in an LTX file that was found whole. */
export interface VerifiedSnapshot {
  path: string;
  header: LtxHeader;
  table: PageTable;
  position: Position;
}

function* readPages(reader: LtxReader): Generator<Page[]> {
  let batch: Page[] = [];
  for (let page = reader.next(); page; page = reader.next()) {
    batch.push(page);
    if (batch.length < PAGES_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Reads the whole file and verifies it. Throws `LtxError` when it is not a whole, good snapshot. */
export function verifySnapshot(path: string): VerifiedSnapshot {
  const fd = openSync(path, "r");
  try {
    const reader = new LtxReader(new FileSource(fd));
    const { header } = reader;
    if (!isSnapshot(header)) throw new LtxError("not a whole database");
    const table = new PageTable(header.page_size);
    for (const batch of readPages(reader)) {
      table.accept(table.change(batch, Math.max(table.count, batch.at(-1)?.number ?? 0)));
    }
    if (table.count < header.commit) table.accept(table.change([], header.commit));
    const { post_checksum } = reader.end();
    if (table.checksum !== post_checksum) throw new LtxError("the pages do not lead to the checksum");
    return { path, header, table, position: { txid: header.max_txid, checksum: post_checksum } };
  } finally {
    closeSync(fd);
  }
}

/** The pages of a verified snapshot. */
export function* snapshotPages({ path }: Pick<VerifiedSnapshot, "path">): Generator<Page[]> {
  const fd = openSync(path, "r");
  try {
    yield* readPages(new LtxReader(new FileSource(fd)));
  } finally {
    closeSync(fd);
  }
}
