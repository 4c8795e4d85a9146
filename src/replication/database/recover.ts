/**
 * Finds the position of a database when it is opened, with the write lock held, so that nothing changes.
 *
 * 1. The end of the WAL, or an earlier place in it, is known to the transaction log: the position is that
 *    transaction's. Frames after it are transactions that were not captured yet.
 * 2. The WAL is new, and the database file is, by its times, the one that was marked when the old WAL ended:
 *    the position is the mark's.
 * 3. Otherwise the database is read, first without its WAL, and its checksum looked up in the log.
 * 4. Nothing matches: it was written to while no node ran, or is another file. That becomes one transaction of its own,
 *    made of the pages that differ; how many it was, or undoes, is unknown. Replicas copy what they have aside first.
 *
 * A database that is older than the log was either restored by an operator, or its machine lost power and with it the
 * end of SQLite's WAL. Only the first touches the database file after the last transaction was logged: a checkpoint
 * makes the WAL durable first. The restored content is authoritative from then on, as one more transaction.
 */
import type { TransactionLog } from "../log/transaction-log.ts";
import { decodeHeader, decodeLtx, encodeLtx, type LtxHeader } from "../ltx/codec.ts";
import { type Page, PageTable } from "../ltx/page-table.ts";
import { NOWHERE, type Position } from "../position.ts";
import type { Steps } from "../steps.ts";
import type { DatabaseFiles } from "../wal/files.ts";
import { sameGeneration, type WalCursor } from "../wal/frames.ts";
import { type Moment, scan, scanningTable } from "../wal/scan.ts";
import type { IndexHeader } from "../wal/wal-index.ts";
import { copiedTransaction } from "./backup-copy.ts";
import type { PersistedState, PersistedTable } from "./persisted-state.ts";

export type FoundBy = "log" | "mark" | "scan" | "difference" | "restored" | "replaced" | "nothing";

export interface Found {
  by: FoundBy;
  position: Position;
  table: PageTable;
  /** WAL cursor right behind the position. */
  cursor: WalCursor;
  /** The file equals this transaction; later ones were undone. */
  undone?: Undone;
}

export interface Undone {
  after: number;
  last: Position;
}

export interface RecoverParts {
  files: DatabaseFiles;
  page_size: number;
  header: IndexHeader;
  log: TransactionLog;
  kept: PersistedState;
  node_id: bigint;
  now_ms: number;
  /** Maximum size of the transaction that another file becomes. */
  difference_bytes: number;
}

const AT_ONCE = 100;

/** The place of a transaction that no application has committed: the difference between two files. */
const NOT_IN_WAL = { wal_offset: 0, wal_size: 0 };

/** Whether a transaction is such a difference, which may undo others. */
export function isDifference({ wal_offset, wal_size, commit, min_txid }: LtxHeader): boolean {
  return wal_offset === NOT_IN_WAL.wal_offset && wal_size === NOT_IN_WAL.wal_size && commit > 0 && min_txid > 1;
}

/** The page table after `txid`: the stored one with the log applied. */
function* replay(log: TransactionLog, kept: PersistedTable, txid: number): Steps<PageTable> {
  let table = new PageTable(kept.table.page_size, kept.table.copy());
  for (let next = kept.position.txid + 1; next <= txid; next++) {
    const bytes = log.read(next);
    if (!bytes) throw new Error(`the log does not have transaction ${next}`);
    const { header, pages, post_checksum } = decodeLtx(bytes);
    // A deleted database can come back with another page size.
    if (table.count === 0 && table.page_size !== header.page_size) table = new PageTable(header.page_size);
    table.accept(table.change(pages, header.commit));
    if (table.checksum !== post_checksum) throw new Error(`transaction ${next} does not lead to its own checksum`);
    if (next % AT_ONCE === 0) yield;
  }
  return table;
}

/** Whether the frame at `cursor` is in the current WAL, with everything before it. */
function inWal({ files, header, page_size }: RecoverParts, cursor: WalCursor): boolean {
  if (!sameGeneration(cursor, header) || cursor.frame > header.frame) return false;
  // Without a generation there was no WAL then, but one may have been checkpointed and deleted since.
  if (cursor.frame === 0) return cursor.salt1 !== 0 || cursor.salt2 !== 0;
  const bytes = files.frameHeader(cursor.frame, page_size);
  return bytes.readUInt32BE(16) === cursor.sum0 && bytes.readUInt32BE(20) === cursor.sum1;
}

/** The newest known transaction that the WAL ends with or continues from. */
function findInWal(parts: RecoverParts, kept: PersistedTable): { txid: number; cursor: WalCursor } | undefined {
  for (let txid = parts.log.last; txid > kept.position.txid; txid--) {
    const header = parts.log.header(txid);
    if (!header) break;
    const { cursor } = header;
    if (cursor && inWal(parts, cursor)) return { txid, cursor };
  }
  const { cursor, position } = kept;
  return cursor && inWal(parts, cursor) ? { txid: position.txid, cursor } : undefined;
}

/** Behind all frames, or before them. */
function cursorAt(parts: RecoverParts, where: "start" | "end"): WalCursor {
  const { salt1, salt2, frame, sum0, sum1 } = parts.header;
  if (where === "end" || frame === 0) return { salt1, salt2, frame, sum0, sum1 };
  const start = parts.files.walHeader();
  if (!start || !sameGeneration(start, parts.header))
    throw new Error("the log's header is not the one the index means");
  return start;
}

function momentOf({ files, page_size, header }: RecoverParts, frames: number): Moment {
  const pages = frames > 0 ? header.pages : Math.floor(files.databaseBytes() / page_size);
  return { page_size, pages, frames };
}

function position(txid: number, table: PageTable): Position {
  return { txid, checksum: table.checksum };
}

/** An unknown database. If nothing was checkpointed yet, the file is the base and every commit a transaction. */
function* adopt(parts: RecoverParts): Steps<Found> {
  const untouched = parts.header.frame > 0 && parts.files.copiedBack() === 0;
  if (untouched) {
    const table = yield* scanningTable(parts.files, momentOf(parts, 0));
    if (parts.files.copiedBack() === 0 && table.count > 0) {
      return { by: "nothing", position: position(1, table), table, cursor: cursorAt(parts, "start") };
    }
  }
  const table = yield* scanningTable(parts.files, momentOf(parts, parts.header.frame));
  return { by: "nothing", position: position(1, table), table, cursor: cursorAt(parts, "end") };
}

/** A deletion is logged after the file is gone: whatever is here now came later. */
function endsWithDeletion(log: TransactionLog): boolean {
  const last = log.read(log.last);
  return last !== undefined && decodeHeader(last).commit === 0;
}

/** Whether this file was put here after the last logged transaction. */
function wasRestored({ files, log }: RecoverParts, kept: PersistedTable): boolean {
  if (kept.files && kept.files.database !== files.identities.database) return true;
  if (endsWithDeletion(log)) return true;
  const last = log.read(log.last);
  const logged_ms = Math.max(log.written_ms, last ? decodeHeader(last).timestamp_ms : 0);
  return log.written_ms > 0 && files.databaseChangedMs() > logged_ms;
}

/** The file alone is at the last transaction: an application checkpointed it, then began the WAL anew while no node ran. */
function* findBehindFile(parts: RecoverParts, kept: PersistedTable): Steps<Found | undefined> {
  const { files, log, header } = parts;
  if (header.frame === 0 || files.copiedBack() > 0) return undefined;
  const table = yield* scanningTable(files, momentOf(parts, 0));
  const last = log.last === kept.position.txid ? kept.position.checksum : log.checksumAt(log.last);
  if (files.copiedBack() > 0 || table.checksum !== last) return undefined;
  return { by: "scan", position: position(log.last, table), table, cursor: cursorAt(parts, "start") };
}

/** Reads the database and searches for its checksum among the known ones. */
function* findByReading(parts: RecoverParts, kept: PersistedTable): Steps<Found> {
  const { log } = parts;
  const behind = yield* findBehindFile(parts, kept);
  if (behind) return behind;
  const table = yield* scanningTable(parts.files, momentOf(parts, parts.header.frame));
  const cursor = cursorAt(parts, "end");
  const known = (txid: number): Found => ({ by: "scan", position: position(txid, table), table, cursor });
  const restored = wasRestored(parts, kept);
  // Also before the stored state: after a power cut the database may be older than our checksums.
  for (let txid = log.last; txid >= log.base; txid--) {
    if (log.checksumAt(txid) !== table.checksum) continue;
    if (txid === log.last || !restored) return known(txid);
    return yield* replaceBy(parts, kept, table, txid);
  }
  const { txid, checksum } = kept.position;
  if (checksum !== table.checksum) {
    const after = restored ? yield* copiedTransaction({ log, kept, table, first_page: firstPage(parts) }) : undefined;
    // A copy of the last transaction undoes nothing.
    return yield* replaceBy(parts, kept, table, after === log.last ? undefined : after);
  }
  return txid === log.last || !restored ? known(txid) : yield* replaceBy(parts, kept, table, txid);
}

function firstPage(parts: RecoverParts): Buffer {
  for (const [page] of scan(parts.files, momentOf(parts, parts.header.frame))) if (page) return Buffer.from(page.data);
  return Buffer.alloc(0);
}

/** Records the current content as one transaction after the log. `after`: the known state it equals. */
function* replaceBy(parts: RecoverParts, kept: PersistedTable, table: PageTable, after?: number): Steps<Found> {
  const { log, page_size } = parts;
  const there = yield* replay(log, kept, log.last);
  // After a deletion the page size does not matter.
  const before = there.count === 0 ? new PageTable(page_size) : there;
  const last = position(log.last, before);
  const found = { position: position(log.last + 1, table), table, cursor: cursorAt(parts, "end") };
  const pages = before.page_size === page_size ? yield* differingPages(parts, before, table) : undefined;
  // Too large for one transaction, or another page size: replicas get a snapshot.
  if (!pages) {
    parts.kept.noteReplacement(found.position.txid);
    return { ...found, by: "replaced" };
  }
  appendDifference(parts, pages, before, found);
  if (after === undefined) return { ...found, by: "difference" };
  return { ...found, by: "restored", undone: { after, last } };
}

/** Undefined: too large for one transaction. */
function* differingPages(parts: RecoverParts, before: PageTable, table: PageTable): Steps<Page[] | undefined> {
  const most = parts.difference_bytes / parts.page_size;
  const pages: Page[] = [];
  for (const batch of scan(parts.files, momentOf(parts, parts.header.frame))) {
    for (const { number, data } of batch) {
      if (table.samePage(before, number)) continue;
      if (pages.length >= most) return undefined;
      pages.push({ number, data: Buffer.from(data) });
    }
    yield;
  }
  return pages;
}

function appendDifference(
  { log, page_size, node_id, now_ms }: RecoverParts,
  pages: readonly Page[],
  before: PageTable,
  { position: { txid }, table, cursor }: Pick<Found, "position" | "table" | "cursor">,
): void {
  const ltx = encodeLtx(
    {
      page_size,
      commit: table.count,
      min_txid: txid,
      max_txid: txid,
      timestamp_ms: now_ms,
      pre_checksum: before.checksum,
      ...NOT_IN_WAL,
      salt1: cursor.salt1,
      salt2: cursor.salt2,
      node_id,
    },
    pages,
    table.checksum,
  );
  log.append([{ txid, term: 0, cursor, ltx }]);
}

/** What WAL or mark say about an unchanged file. */
function* findByPlace(parts: RecoverParts, kept: PersistedTable): Steps<Found | undefined> {
  const { log, page_size } = parts;
  const there = findInWal(parts, kept);
  if (there && there.txid < log.last && wasRestored(parts, kept)) return undefined;
  if (there) {
    const table = yield* replay(log, kept, there.txid);
    return { by: "log", position: position(there.txid, table), table, cursor: there.cursor };
  }
  const mark = parts.kept.loadMark();
  const marked = mark && mark.position.txid >= kept.position.txid && mark.position.txid <= log.last;
  if (!marked || JSON.stringify(mark.stamp) !== JSON.stringify(parts.files.stamp())) return undefined;
  const table = yield* replay(log, kept, mark.position.txid);
  if (table.checksum !== mark.position.checksum || table.page_size !== page_size) return undefined;
  return { by: "mark", position: mark.position, table, cursor: cursorAt(parts, "start") };
}

export function* recover(parts: RecoverParts): Steps<Found> {
  const { log, files, page_size } = parts;
  const kept = parts.kept.loadTable();
  if (kept && log.empty) log.reset(kept.position.txid);
  const usable = kept && kept.position.txid >= log.base && kept.position.txid <= log.last;
  if (!usable) {
    log.reset(NOWHERE.txid);
    return yield* adopt(parts);
  }
  const same_file = !kept.files || kept.files.database === files.identities.database;
  const same_size = kept.table.page_size === page_size;
  const by_place = same_file && same_size && !endsWithDeletion(log);
  const found = by_place ? yield* findByPlace(parts, kept) : undefined;
  return found ?? (yield* findByReading(parts, kept));
}
