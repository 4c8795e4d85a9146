/**
 * What capturing and applying share about one database: its files and locks, where it stands, its log, and how
 * others hear of transactions.
 */
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { REPLICATION_LIMITS, type Sizes } from "../limits.ts";
import type { LogRecord } from "../log/record.ts";
import { TransactionLog } from "../log/transaction-log.ts";
import type { LtxHeader } from "../ltx/codec.ts";
import { PageTable } from "../ltx/page-table.ts";
import { NOWHERE, type Position } from "../position.ts";
import { DatabaseFiles } from "../wal/files.ts";
import { sameGeneration, type WalCursor } from "../wal/frames.ts";
import type { IndexHeader } from "../wal/wal-index.ts";
import type { Step } from "../wal/wal-writer.ts";
import type { BulkCheckpointer } from "./checkpointer.ts";
import { Connections } from "./connections.ts";
import { PersistedState } from "./persisted-state.ts";

/** A transaction as others are told of it. */
export interface TransactionInfo {
  position: Position;
  page_size: number;
  commit: number;
  timestamp_ms: number;
}

export interface DatabaseOptions {
  name: string;
  path: string;
  /** Where the node keeps what it knows about the database. */
  dir: string;
  node_id: bigint;
  clock: Clock;
  /** Tells of each transaction once, in order: captured and durable, or applied. Those that came together at once. */
  onTransactions(infos: readonly TransactionInfo[]): void;
  /** The disk failed; what is on it is not known any more. */
  onFailure(error: unknown): void;
  sizes?: Sizes;
  /** Copies long logs back beside other work; without it that is done in between. */
  checkpointer?: BulkCheckpointer;
  /** How long to ask for the write lock; then it is not opened. */
  lock_ms?: number;
  /** How far replicas may be behind; see `REPLICATION_LIMITS.max_lag_ms`. */
  max_lag_ms?: number;
  /** Called at the moments a crash is most interesting. */
  step?: (step: Step) => void;
}

/** What came does not follow from what is here, or somebody else wrote here. */
export class PositionMismatch extends Error {
  override readonly name = "PositionMismatch";
}

/** An application holds the write lock for too long. */
export class DatabaseBusy extends Error {
  override readonly name = "DatabaseBusy";
}

const NO_FRAMES: WalCursor = { salt1: 0, salt2: 0, frame: 0, sum0: 0, sum1: 0 };

export class DatabaseState {
  readonly options: DatabaseOptions;
  readonly connections: Connections;
  readonly files: DatabaseFiles;
  readonly kept: PersistedState;
  readonly log: TransactionLog;
  readonly page_size: number;
  table: PageTable;
  position: Position = NOWHERE;
  /** In SQLite's log, right behind the position. */
  cursor: WalCursor = NO_FRAMES;
  /** In the log of SQLite's in which our read transaction began, if it did not begin before all of it. */
  watched: WalCursor = NO_FRAMES;
  /** Where the log was when our read transaction began: its end, and whether all of it was in the database. */
  #watch_began_at = "";
  /** When the last transaction was written on its primary. */
  timestamp_ms = 0;
  /** The term written beside transactions from now on. */
  term = 0;
  /** Frames in SQLite's log at which the next attempt is made to copy it back. */
  checkpoint_at: number;
  /** Frames in SQLite's log past which writers wait until it is copied back. */
  #long_at: number;
  /** Since when, by the monotonic clock, there was always something that was not captured yet. */
  #behind_since_ms: number | undefined;
  /** Whether most of SQLite's log is being, or was just, copied back. */
  bulk: "idle" | "running" | "done" = "idle";
  /** Frames there were when that began. */
  bulk_frame = 0;
  closed = false;
  /** See `ReplicatedDatabase.pinned`. */
  pinned = false;
  readonly #unpublished: TransactionInfo[] = [];
  #sync_timer: NodeJS.Timeout | undefined;
  #logged_bytes = 0;
  #table_saved_at = 0;
  #table_txid = 0;

  /** Takes the write lock before anything else: a database that is in use costs one look. */
  constructor(options: DatabaseOptions) {
    this.options = options;
    this.connections = new Connections(options.path);
    let files: DatabaseFiles | undefined;
    try {
      this.holdWithin(options.lock_ms ?? REPLICATION_LIMITS.open_lock_most_ms);
      this.page_size = this.connections.page_size;
      this.checkpoint_at = this.checkpoint_frames;
      this.#long_at = this.checkpoint_frames * 2;
      this.table = new PageTable(this.page_size);
      files = new DatabaseFiles(options.path);
      this.files = files;
      this.kept = new PersistedState(options.dir);
      this.log = new TransactionLog(join(options.dir, "log"), options.sizes);
    } catch (error) {
      this.connections.close();
      files?.close();
      throw error;
    }
    this.log.onDurable = () => this.announceDurable();
  }

  get checkpoint_frames(): number {
    const { checkpoint_frames, checkpoint_bytes } = REPLICATION_LIMITS;
    return this.options.sizes?.checkpoint_frames ?? Math.min(checkpoint_frames, checkpoint_bytes / this.page_size);
  }

  /** True when writers are to wait: so many frames are not captured, or for so long, or the log is so long. */
  writersTooFast(behind: number): boolean {
    const { max_lag_ms, behind_frames } = REPLICATION_LIMITS;
    const now_ms = this.options.clock.monotonic();
    if (behind === 0) this.#behind_since_ms = undefined;
    else this.#behind_since_ms ??= now_ms;
    const behind_ms = now_ms - (this.#behind_since_ms ?? now_ms);
    const late = behind_ms > (this.options.max_lag_ms ?? max_lag_ms) / 4;
    return late || behind > behind_frames || this.wal_is_long;
  }

  /** A reader is in the way of copying the log back: writers do not wait for it, but now and then. */
  waitForReader(): void {
    this.#long_at = this.cursor.frame + this.checkpoint_frames;
  }

  copiedAll(): void {
    this.#long_at = this.checkpoint_frames * 2;
    this.checkpoint_at = this.checkpoint_frames;
  }

  /** True when SQLite's log is too long, and the next writer would not begin it anew. */
  get wal_is_long(): boolean {
    const header = this.files.indexHeader();
    return header !== undefined && header.frame > this.#long_at && !this.files.allCopied(header);
  }

  /**
   * Gives back what a long log took on the disk: SQLite itself begins it anew in the same file. Only when nobody is in the
   * way, and everything is captured.
   */
  shrinkLog(): void {
    const header = this.files.indexHeader();
    const most = this.checkpoint_frames * this.page_size * 2;
    if (!header || this.files.walBytes() <= most) return;
    if (header.frame > 0 && !(sameGeneration(header, this.cursor) && header.frame === this.cursor.frame)) return;
    this.log.syncNow();
    // Our own read transaction moves out of the log once all of it is copied; then, the next time, it can be cut.
    if (this.files.allCopied(header)) this.connections.checkpoint("TRUNCATE");
    else if (header.frame < this.checkpoint_frames) this.connections.checkpoint("PASSIVE");
  }

  step(step: Step): void {
    this.options.step?.(step);
  }

  // ——— the write lock ———

  /** For what cannot be done without it. */
  holdWithin(ms: number): void {
    if (this.insistOnHolding(ms)) return;
    throw new DatabaseBusy("an application holds the write lock; it is opened when that transaction ends");
  }

  /** For what can as well be done a little later. */
  tryHoldBriefly(): boolean {
    return this.#holdWithin(REPLICATION_LIMITS.lock_try_ms);
  }

  /** Against writers that leave the lock free for microseconds only: asks without a pause. */
  insistOnHolding(ms: number): boolean {
    return this.#holdWithin(ms, () => undefined);
  }

  #holdWithin(ms: number, between = pause): boolean {
    const { clock } = this.options;
    const until = clock.monotonic() + ms;
    while (!this.connections.tryLock()) {
      if (clock.monotonic() > until) return false;
      between();
    }
    return true;
  }

  headerUnderLock(): IndexHeader {
    const header = this.files.indexHeader();
    if (!header) throw new Error(`${this.options.path}-shm has no valid header although the lock is held`);
    // Before the first frame of a generation the index knows neither size.
    const pages = Math.floor(this.files.databaseBytes() / this.page_size);
    return header.frame > 0 ? header : { ...header, page_size: this.page_size, pages };
  }

  // ——— the read transaction: see `Connections` ———

  watch(): void {
    this.connections.watch();
    this.watched = NO_FRAMES;
  }

  moveWatch(before_end: () => void): void {
    // Looked at before it begins: it may begin later in the log than this says, never earlier.
    const place = this.#place();
    this.connections.moveWatch(before_end);
    this.watched = NO_FRAMES;
    this.#watch_began_at = place;
  }

  /** True when a read transaction that began now would let others copy back, or begin anew, more of the log. */
  get watch_is_old(): boolean {
    return this.#place() !== this.#watch_began_at;
  }

  #place(): string {
    const header = this.files.indexHeader();
    return header ? `${header.salt1} ${header.salt2} ${header.frame} ${this.files.allCopied(header)}` : "";
  }

  // ——— transactions ———

  /** The header of the next transaction; where it was in SQLite's log is for the caller to add. */
  header(txid: number, commit: number): LtxHeader {
    return {
      page_size: this.page_size,
      commit,
      min_txid: txid,
      max_txid: txid,
      timestamp_ms: this.options.clock.now(),
      pre_checksum: this.position.checksum,
      wal_offset: 0,
      wal_size: 0,
      salt1: this.cursor.salt1,
      salt2: this.cursor.salt2,
      node_id: this.options.node_id,
    };
  }

  /** What to tell of the transaction the position is at. */
  info(commit: number, timestamp_ms: number): TransactionInfo {
    this.timestamp_ms = timestamp_ms;
    return { position: this.position, page_size: this.page_size, commit, timestamp_ms };
  }

  /** `remember`: see `TransactionLog.append`. */
  append(records: readonly LogRecord[], remember = true): void {
    this.log.append(records, remember);
    for (const { ltx } of records) this.#logged_bytes += ltx.length;
  }

  /** Tells others of transactions as soon as the log has them for good. */
  announceWhenDurable(infos: readonly TransactionInfo[]): void {
    this.#unpublished.push(...infos);
    this.syncLog();
    // Perhaps everything is durable already, and no sync will say so.
    if (this.log.durable >= this.log.last) queueMicrotask(() => this.announceDurable());
  }

  /** Has the log made durable beside other work. */
  syncLog(): void {
    this.log.sync().catch((error: unknown) => this.options.onFailure(error));
  }

  /** The same a little later, together with what comes until then. */
  syncLogSoon(): void {
    if (this.#sync_timer) return;
    this.#sync_timer = setTimeout(() => {
      this.#sync_timer = undefined;
      this.syncLog();
    }, REPLICATION_LIMITS.replica_sync_ms);
  }

  announceDurable(): void {
    const { durable } = this.log;
    const ready = this.#unpublished.findIndex(({ position }) => position.txid > durable);
    const infos = this.#unpublished.splice(0, ready < 0 ? this.#unpublished.length : ready);
    if (infos.length > 0) this.options.onTransactions(infos);
  }

  // ——— copying SQLite's log back ———

  /** Copies most of it, without any lock. False while that still runs: ask again later. */
  copiedMost(): boolean {
    if (this.bulk === "idle") this.#copyMost();
    if (this.bulk !== "done") return false;
    this.bulk = "idle";
    return true;
  }

  #copyMost(): void {
    const { checkpointer, path, onFailure } = this.options;
    // This makes SQLite's log durable, and ours must never have less: what is applied together can only be told apart there.
    this.log.syncNow();
    if (!checkpointer) {
      this.connections.checkpoint("PASSIVE");
      this.bulk = "done";
      return;
    }
    this.bulk = "running";
    checkpointer.run(path).then(() => {
      this.bulk = "done";
    }, onFailure);
  }

  // ——— what is kept for the next start ———

  saveTable(): void {
    this.log.syncNow();
    const { position, cursor, table } = this;
    this.kept.saveTable({ position, cursor, table, files: this.files.identities });
    this.#table_saved_at = this.#logged_bytes;
    this.#table_txid = position.txid;
  }

  /** Writes the page checksums out when enough was logged since the last time. */
  saveTableIfDue(): void {
    const every = this.options.sizes?.table_every_bytes ?? REPLICATION_LIMITS.table_every_bytes;
    const due = Math.max(every, this.table.count * 64);
    if (this.#logged_bytes - this.#table_saved_at >= due) this.saveTable();
  }

  /** The database file alone, as it is now, is at the position. */
  mark(): void {
    this.kept.saveMark({ position: this.position, stamp: this.files.stamp() });
  }

  retain(keep_after: number): void {
    const { retention_ms, retention_bytes } = { ...REPLICATION_LIMITS, ...this.options.sizes };
    this.log.retain(this.options.clock.now(), Math.min(keep_after, this.#table_txid), retention_ms, retention_bytes);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.#sync_timer);
    this.log.close();
    this.options.checkpointer?.settle(this.options.path);
    this.connections.close();
    this.files.close();
  }
}

const nap = new Int32Array(new SharedArrayBuffer(4));

/** Gives another process a moment to let go of a lock. */
function pause(): void {
  Atomics.wait(nap, 0, 0, 0.1);
}
