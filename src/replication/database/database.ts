/**
 * One database file of a node, in one of two states:
 *
 *   held        this node has SQLite's write lock. Applications can only read; `apply` appends transactions of the
 *               primary. Replicas are held, and so is a fenced primary.
 *   capturing   applications write; `capture` turns each committed transaction into one LTX file in the log.
 *
 * Everything here is synchronous but for durability: between two lines of a method no other code of this process runs,
 * so the order of steps can be relied on.
 */
import { rmSync } from "node:fs";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { TransactionLog } from "../log/transaction-log.ts";
import { decodeLtx, encodeLtx } from "../ltx/codec.ts";
import { type Page, PageTable } from "../ltx/page-table.ts";
import { NO_PAGES, type Position } from "../position.ts";
import type { Steps } from "../steps.ts";
import type { DatabaseFiles } from "../wal/files.ts";
import type { Moment } from "../wal/scan.ts";
import { Applier } from "./apply.ts";
import {
  type Captured,
  capture,
  checkpoint,
  checkpointDue,
  endCheckpoint,
  hasUncaptured,
  stepAside,
  watchFromHere,
} from "./capture.ts";
import { FileCheck } from "./file-check.ts";
import { find, isNewTransaction, settle, timestampOf } from "./opening.ts";
import type { ReceivedSnapshot } from "./received-snapshot.ts";
import type { Found, FoundBy, Undone } from "./recover.ts";
import { DatabaseBusy, type DatabaseOptions, DatabaseState, PositionMismatch, type TransactionInfo } from "./state.ts";

export class ReplicatedDatabase {
  readonly name: string;
  readonly path: string;
  /** How the position was determined at opening. */
  readonly found_by: FoundBy;
  /** Transactions undone by restoring an older file. */
  readonly undone: Undone | undefined;
  /** Logged transactions that the database had lost at opening and that could not be restored. */
  readonly cut: number;
  /** A crash interrupted a snapshot: the content is useless. */
  readonly half_replaced: boolean;
  readonly #state: DatabaseState;
  #applier: Applier | undefined;
  #file_check: FileCheck | undefined;
  /** Since when writers are throttled. */
  #paused_since_ms: number | undefined;

  private constructor(state: DatabaseState, found: Found, opened: { applier: Applier; cut: number; half: boolean }) {
    this.name = state.options.name;
    this.path = state.options.path;
    this.found_by = found.by;
    this.undone = found.undone;
    this.cut = opened.cut;
    this.half_replaced = opened.half;
    this.#state = state;
    this.#applier = opened.applier;
  }

  /**
   * Opens it locked, in steps, because a large one may have to be read. Throws `DatabaseBusy`, or SQLite's own errors,
   * at the first step.
   */
  static *opening(options: DatabaseOptions): Steps<ReplicatedDatabase> {
    const state = new DatabaseState(options);
    let opened = false;
    try {
      const half = state.kept.replacing;
      const header = state.headerUnderLock();
      const found = yield* find(state, header);
      state.table = found.table;
      state.position = found.position;
      state.cursor = found.cursor;
      if (found.by === "nothing" || found.by === "replaced") state.log.reset(found.position.txid);
      const info = state.info(found.table.count, timestampOf(state, found.position.txid));
      if (isNewTransaction(found.by)) state.announceWhenDurable([info]);
      const settled = yield* settle(state, header);
      opened = true;
      return new ReplicatedDatabase(state, found, { ...settled, half });
    } finally {
      // An error, or the caller stopped.
      if (!opened) state.close();
    }
  }

  get position(): Position {
    return this.#state.position;
  }

  get page_size(): number {
    return this.#state.page_size;
  }

  get log(): TransactionLog {
    return this.#state.log;
  }

  /** Time of the last transaction on its primary. */
  get timestamp_ms(): number {
    return this.#state.timestamp_ms;
  }

  /** See `PersistedState.noteReplacement`. */
  get replaced_at(): number {
    return this.#state.kept.replaced_at;
  }

  /** Frames in SQLite's log. */
  get wal_frames(): number {
    return this.#state.files.indexHeader()?.frame ?? 0;
  }

  get held(): boolean {
    return this.#applier !== undefined;
  }

  /** Whether its files are closed: then their descriptors may be reused. */
  get closed(): boolean {
    return this.#state.closed;
  }

  /** The term of further transactions. */
  set term(term: number) {
    this.#state.term = term;
  }

  // ——— held ———

  /** Lets applications write, and starts capturing. */
  release(): void {
    if (!this.held) return;
    this.log.syncNow();
    this.#applier = undefined;
    this.#state.watch();
    this.#state.connections.unlock();
  }

  /** Takes the write lock and captures what was committed before. Returns false when an application has it. */
  hold(): boolean {
    if (this.#applier) return true;
    if (!this.#state.tryHoldBriefly()) return false;
    capture(this.#state);
    this.#state.connections.unwatch();
    this.#applier = new Applier(this.#state);
    this.#paused_since_ms = undefined;
    return true;
  }

  /** See `Applier.apply`. */
  apply(files: readonly Buffer[], term: number, announce: "now" | "when durable" = "now"): void {
    this.#held().apply(files, term, announce);
  }

  /** While true the write lock is never released, not even to truncate the WAL. */
  set pinned(pinned: boolean) {
    this.#state.pinned = pinned;
  }

  /** See `Applier.replace`. */
  replace(batches: Iterable<Page[]>, { table, position, timestamp_ms, replaced_at }: ReceivedSnapshot): void {
    this.#state.kept.noteReplacement(replaced_at);
    this.#held().replace(batches, table, position);
    this.#state.timestamp_ms = timestamp_ms;
  }

  /** Sets the position to the primary's after this transaction, whatever was counted here. */
  setPosition(txid: number): void {
    const state = this.#state;
    state.log.reset(txid);
    state.position = { txid, checksum: state.position.checksum };
    state.saveTable();
  }

  // ——— capturing ———

  /** Captures new commits, and checkpoints when due. */
  capture(): Captured {
    const { clock } = this.#state.options;
    // Locked for a writing replica: no application writes here.
    if (this.#applier) return { transactions: 0, behind: 0 };
    const until_ms = clock.monotonic() + REPLICATION_LIMITS.capture_ms;
    const captured = capture(this.#state, REPLICATION_LIMITS.capture_frames);
    while (captured.behind > 0 && clock.monotonic() < until_ms) {
      const more = capture(this.#state, REPLICATION_LIMITS.capture_frames);
      captured.behind = more.behind;
      captured.transactions += more.transactions;
    }
    if (captured.transactions > 0) watchFromHere(this.#state);
    const too_fast = this.#state.writersTooFast(captured.behind);
    if (this.#paused_since_ms !== undefined) this.#checkpointWhilePaused(captured.behind);
    else if (captured.behind <= this.#state.checkpoint_frames / 4 && checkpointDue(this.#state))
      checkpoint(this.#state);
    else if (captured.behind === 0 && captured.transactions === 0) stepAside(this.#state);
    return { ...captured, too_fast };
  }

  /** True when applications have committed something that was not captured yet. Costs one read of the WAL index. */
  get has_uncaptured(): boolean {
    return !this.held && !this.closed && hasUncaptured(this.#state);
  }

  #checkpointWhilePaused(behind: number): void {
    if (behind === 0 && this.#state.cursor.frame >= this.#state.checkpoint_frames) endCheckpoint(this.#state);
  }

  /** Whether writers are throttled. */
  get paused(): boolean {
    return this.#paused_since_ms !== undefined;
  }

  /**
   * Throttles writers that are faster than capturing or replicas: while `slow` they wait for the lock, but not so long
   * that they time out, unless `firm`. Otherwise SQLite's WAL would fill the disk, and replicas fall ever further
   * behind.
   */
  slowWriters(slow: boolean, firm = false): void {
    if (this.#applier || this.closed) return;
    const now_ms = this.#state.options.clock.monotonic();
    const long_enough = now_ms - (this.#paused_since_ms ?? now_ms) > REPLICATION_LIMITS.slow_writers_ms;
    if (!slow || (long_enough && !firm)) {
      if (this.#paused_since_ms !== undefined) this.#state.connections.unlock();
      this.#paused_since_ms = undefined;
    } else if (this.#paused_since_ms === undefined && this.#state.insistOnHolding(REPLICATION_LIMITS.insist_ms)) {
      this.#paused_since_ms = now_ms;
    }
  }

  // ——— both ———

  /** Resolves when the current state is durable; later commits are not waited for. */
  async durable(): Promise<void> {
    const { txid } = this.position;
    if (this.log.durable >= txid) return;
    this.#state.syncLog();
    await this.log.reached(txid);
  }

  /** Periodic maintenance: `keep_after` is the first transaction that must stay. */
  tidy(keep_after = Number.MAX_SAFE_INTEGER): void {
    this.#checkpointIfIdle();
    if (this.log.durable < this.log.last) this.#state.announceWhenDurable([]);
    this.#state.saveTableIfDue();
    this.#state.retain(keep_after);
  }

  /** Checkpoints a long WAL that is idle. */
  #checkpointIfIdle(): void {
    const state = this.#state;
    this.#applier?.truncateIfDue();
    if (this.held) return;
    state.shrinkLog();
    if (state.cursor.frame < state.checkpoint_frames) return;
    const { behind, transactions } = capture(state, REPLICATION_LIMITS.capture_frames);
    if (behind === 0 && transactions === 0) checkpoint(state);
  }

  /**
   * Whether a page of the file was written outside SQLite: compares a part of it at each call, all of it with
   * `restart`.
   */
  hasForeignPage(restart: boolean): boolean {
    // On a replica what is applied next would be compared while it is written.
    if (this.held || this.closed) return false;
    this.#file_check ??= new FileCheck(this.#state);
    if (restart) this.#file_check.restart();
    return this.#file_check.findsForeignPage();
  }

  blockSums(): string[] {
    return this.#state.table.blockSums();
  }

  /** The files and their current extent. The caller must prevent changes. */
  get source(): { files: DatabaseFiles; moment: Moment } {
    const { files, page_size, table } = this.#state;
    return { files, moment: { page_size, pages: table.count, frames: this.wal_frames } };
  }

  /** Runs `work` while nothing can be written and everything is captured. Returns false when an application writes. */
  whileStill(work: () => void): boolean {
    if (this.held) {
      work();
      return true;
    }
    if (!this.#state.tryHoldBriefly()) return false;
    try {
      capture(this.#state);
      work();
      return true;
    } finally {
      if (!this.paused) this.#state.connections.unlock();
    }
  }

  /** The checksum after `txid`, within the log's retention. */
  checksumAt(txid: number): bigint | undefined {
    return txid === this.position.txid ? this.position.checksum : this.log.checksumAt(txid);
  }

  /** Records the deletion of the file, and closes. */
  drop(): TransactionInfo {
    const header = this.#state.header(this.position.txid + 1, 0);
    return this.#dropBy(encodeLtx(header, [], NO_PAGES), this.#state.term);
  }

  /**
   * The same on a replica, after the primary's deletion. `moveAside` runs before it is recorded: after a crash in
   * between the file is merely missing.
   */
  applyDrop(bytes: Buffer, term: number, moveAside: () => void): TransactionInfo {
    const { header } = decodeLtx(bytes);
    const { txid, checksum } = this.position;
    if (header.min_txid !== txid + 1 || header.pre_checksum !== checksum) {
      throw new PositionMismatch(`${this.name}: deletion ${header.min_txid} does not follow ${txid}`);
    }
    moveAside();
    return this.#dropBy(bytes, term);
  }

  #dropBy(ltx: Buffer, term: number): TransactionInfo {
    const state = this.#state;
    const { max_txid, timestamp_ms } = decodeLtx(ltx).header;
    state.append([{ txid: max_txid, term, cursor: state.cursor, ltx }]);
    state.position = { txid: max_txid, checksum: NO_PAGES };
    state.table = new PageTable(state.page_size);
    state.saveTable();
    // The next file of the name may have the same inode, and the same times when it is made at once.
    state.kept.forgetMark();
    state.announceDurable();
    state.close();
    // A leftover WAL is useless, and harmful to the next database of the name.
    for (const end of ["-wal", "-shm"]) rmSync(`${this.path}${end}`, { force: true });
    return state.info(0, timestamp_ms);
  }

  /**
   * Another file has its name. Must be held. The state is left to the new file; the write lock stays until `abandon`,
   * so that applications with the old file get "database is locked" instead of writing to an unlinked file.
   */
  retire(): void {
    this.emptyLog();
    this.#state.saveTable();
    this.#state.announceDurable();
    this.#state.log.close();
  }

  /** Whether this is the file that this database has open, whatever its name is by now. */
  isOwnFile(identity: string | undefined): boolean {
    return identity === this.#state.files.identities.database;
  }

  /** Whether this is the WAL that this database has open. */
  isOwnWal(identity: string | undefined): boolean {
    return identity === this.#state.files.identities.wal;
  }

  /** Closes so that the next start need not read the database. */
  close(): void {
    const state = this.#state;
    // A truncated WAL leaves a mark. If readers prevent it, the next start reads more.
    if (this.hold()) this.emptyLog();
    state.saveTable();
    state.announceDurable();
    state.close();
  }

  /** Checkpoints and truncates SQLite's WAL, if possible. Must be held. */
  emptyLog(): void {
    const { checkpointer, path } = this.#state.options;
    checkpointer?.settle(path);
    try {
      this.#held().truncate();
    } catch (error) {
      if (!(error instanceof PositionMismatch || error instanceof DatabaseBusy)) throw error;
    }
  }

  /** Closes without saving, like a crash. */
  abandon(): void {
    this.#state.close();
  }

  #held(): Applier {
    if (!this.#applier) throw new Error(`${this.name} is not held`);
    return this.#applier;
  }
}
