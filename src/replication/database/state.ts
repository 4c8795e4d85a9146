/**
 * The state of one database that capturing and applying share: its files and locks, its position, its log, and the
 * announcement of transactions.
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

/** A transaction, as announced. */
export interface TransactionInfo {
  position: Position;
  page_size: number;
  commit: number;
  timestamp_ms: number;
}

export interface DatabaseOptions {
  name: string;
  path: string;
  /** Directory of the node's state about the database. */
  dir: string;
  node_id: bigint;
  clock: Clock;
  /** Announces each transaction once, in order: captured and durable, or applied. In batches. */
  onTransactions(infos: readonly TransactionInfo[]): void;
  /** The disk failed; its content is unknown. */
  onFailure(error: unknown): void;
  sizes?: Sizes;
  /** Checkpoints long WALs in the background; without it they are done inline. */
  checkpointer?: BulkCheckpointer;
  /** Timeout for the write lock at opening. */
  lock_ms?: number;
  /** Maximum lag of replicas; see `REPLICATION_LIMITS.max_lag_ms`. */
  max_lag_ms?: number;
  /** Called at points where a crash matters, for tests. */
  step?: (step: Step) => void;
}

/** A transaction does not follow from the position, or someone else wrote here. */
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
  /** WAL cursor right behind the position. */
  cursor: WalCursor = NO_FRAMES;
  /** WAL position of our read transaction, unless it began before the WAL. */
  watched: WalCursor = NO_FRAMES;
  /** WAL end, and whether all was checkpointed, when our read transaction began. */
  #watch_began_at = "";
  /** Time of the last transaction on its primary. */
  timestamp_ms = 0;
  /** The term of further transactions. */
  term = 0;
  /** WAL length for the next checkpoint attempt. */
  checkpoint_at: number;
  /** WAL length above which writers are throttled. */
  #long_at: number;
  /** Since when capturing has been behind, on the monotonic clock. */
  #behind_since_ms: number | undefined;
  /** State of the background checkpoint. */
  bulk: "idle" | "running" | "done" = "idle";
  /** WAL length when that began. */
  bulk_frame = 0;
  closed = false;
  /** See `ReplicatedDatabase.pinned`. */
  pinned = false;
  readonly #unpublished: TransactionInfo[] = [];
  #sync_timer: NodeJS.Timeout | undefined;
  #logged_bytes = 0;
  #table_saved_at = 0;
  #table_txid = 0;

  /** Takes the write lock first: a database in use costs one attempt. */
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

  /** Whether to throttle writers: too many frames uncaptured, for too long, or the WAL too long. */
  writersTooFast(behind: number): boolean {
    const { max_lag_ms, behind_frames } = REPLICATION_LIMITS;
    const now_ms = this.options.clock.monotonic();
    if (behind === 0) this.#behind_since_ms = undefined;
    else this.#behind_since_ms ??= now_ms;
    const behind_ms = now_ms - (this.#behind_since_ms ?? now_ms);
    const late = behind_ms > (this.options.max_lag_ms ?? max_lag_ms) / 4;
    return late || behind > behind_frames || this.wal_is_long;
  }

  /** A reader blocks the checkpoint: writers are throttled only occasionally. */
  waitForReader(): void {
    this.#long_at = this.cursor.frame + this.checkpoint_frames;
  }

  copiedAll(): void {
    this.#long_at = this.checkpoint_frames * 2;
    this.checkpoint_at = this.checkpoint_frames;
  }

  /** Whether SQLite's WAL is too long and the next writer would not restart it. */
  get wal_is_long(): boolean {
    const header = this.files.indexHeader();
    return header !== undefined && header.frame > this.#long_at && !this.files.allCopied(header);
  }

  /** Truncates a long WAL file, because SQLite only reuses it. Only without readers and when everything is captured. */
  shrinkLog(): void {
    const header = this.files.indexHeader();
    const most = this.checkpoint_frames * this.page_size * 2;
    if (!header || this.files.walBytes() <= most) return;
    if (header.frame > 0 && !(sameGeneration(header, this.cursor) && header.frame === this.cursor.frame)) return;
    this.log.syncNow();
    // Our read transaction leaves the WAL once all is checkpointed; then it can be truncated next time.
    if (this.files.allCopied(header)) this.connections.checkpoint("TRUNCATE");
    else if (header.frame < this.checkpoint_frames) this.connections.checkpoint("PASSIVE");
  }

  step(step: Step): void {
    this.options.step?.(step);
  }

  // ——— the write lock ———

  /** For work that requires it. */
  holdWithin(ms: number): void {
    if (this.insistOnHolding(ms)) return;
    throw new DatabaseBusy("an application holds the write lock; it is opened when that transaction ends");
  }

  /** For work that can wait. */
  tryHoldBriefly(): boolean {
    return this.#holdWithin(REPLICATION_LIMITS.lock_try_ms);
  }

  /** Against writers that release the lock for microseconds only: retries without pause. */
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
    // Before the first frame of a generation the index has no sizes.
    const pages = Math.floor(this.files.databaseBytes() / this.page_size);
    return header.frame > 0 ? header : { ...header, page_size: this.page_size, pages };
  }

  // ——— the read transaction: see `Connections` ———

  watch(): void {
    this.connections.watch();
    this.watched = NO_FRAMES;
  }

  moveWatch(before_end: () => void): void {
    // Read before it begins: it may begin later in the WAL, never earlier.
    const place = this.#place();
    this.connections.moveWatch(before_end);
    this.watched = NO_FRAMES;
    this.#watch_began_at = place;
  }

  /** Whether a new read transaction would let others checkpoint or restart more of the WAL. */
  get watch_is_old(): boolean {
    return this.#place() !== this.#watch_began_at;
  }

  #place(): string {
    const header = this.files.indexHeader();
    return header ? `${header.salt1} ${header.salt2} ${header.frame} ${this.files.allCopied(header)}` : "";
  }

  // ——— transactions ———

  /** The header of the next transaction; the caller adds its WAL position. */
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

  /** The announcement of the current transaction. */
  info(commit: number, timestamp_ms: number): TransactionInfo {
    this.timestamp_ms = timestamp_ms;
    return { position: this.position, page_size: this.page_size, commit, timestamp_ms };
  }

  /** `remember`: see `TransactionLog.append`. */
  append(records: readonly LogRecord[], remember = true): void {
    this.log.append(records, remember);
    for (const { ltx } of records) this.#logged_bytes += ltx.length;
  }

  /** Announces transactions once the log is durable. */
  announceWhenDurable(infos: readonly TransactionInfo[]): void {
    this.#unpublished.push(...infos);
    this.syncLog();
    // Everything may already be durable, and no sync follows.
    if (this.log.durable >= this.log.last) queueMicrotask(() => this.announceDurable());
  }

  /** Syncs the log in the background. */
  syncLog(): void {
    this.log.sync().catch((error: unknown) => this.options.onFailure(error));
  }

  /** The same slightly later, batched. */
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

  // ——— checkpoints ———

  /** Checkpoints most of the WAL without a lock. Returns false while that runs. */
  copiedMost(): boolean {
    if (this.bulk === "idle") this.#copyMost();
    if (this.bulk !== "done") return false;
    this.bulk = "idle";
    return true;
  }

  #copyMost(): void {
    const { checkpointer, path, onFailure } = this.options;
    // This syncs SQLite's WAL, and ours must never have less: only ours separates batched transactions.
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

  // ——— state for the next start ———

  saveTable(): void {
    this.log.syncNow();
    const { position, cursor, table } = this;
    this.kept.saveTable({ position, cursor, table, files: this.files.identities });
    this.#table_saved_at = this.#logged_bytes;
    this.#table_txid = position.txid;
  }

  /** Stores the page checksums when enough was logged. */
  saveTableIfDue(): void {
    const every = this.options.sizes?.table_every_bytes ?? REPLICATION_LIMITS.table_every_bytes;
    const due = Math.max(every, this.table.count * 64);
    if (this.#logged_bytes - this.#table_saved_at >= due) this.saveTable();
  }

  /** Records that the database file alone is at the position. */
  mark(): void {
    this.kept.saveMark({ position: this.position, stamp: this.files.stamp() });
  }

  retain(keep_after: number): void {
    const { retention_ms, retention_bytes } = { ...REPLICATION_LIMITS, ...this.options.sizes };
    this.log.forgetIfIdle();
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

/** Gives another process a moment to release a lock. */
function pause(): void {
  Atomics.wait(nap, 0, 0, 0.1);
}
