/**
 * One database file of a node, in one of two states:
 *
 *   held        this node has SQLite's write lock. Applications read, nobody writes, `apply` appends what a primary
 *               sent. Replicas are held, and so is a primary that has lost its right to be one.
 *   capturing   applications write; `capture` turns each committed transaction into one LTX file in the log.
 *
 * Everything here is synchronous but for durability: between two lines of a method nothing else of this
 * process happens, which is what makes the order of steps an argument.
 */
import { rmSync } from "node:fs";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { TransactionLog } from "../log/transaction-log.ts";
import { decodeHeader, decodeLtx, encodeLtx } from "../ltx/codec.ts";
import { type Page, PageTable } from "../ltx/page-table.ts";
import { NO_PAGES, NOWHERE, type Position } from "../position.ts";
import type { Steps } from "../steps.ts";
import type { DatabaseFiles } from "../wal/files.ts";
import { sameGeneration } from "../wal/frames.ts";
import type { Moment } from "../wal/scan.ts";
import type { IndexHeader } from "../wal/wal-index.ts";
import { Applier } from "./apply.ts";
import {
  type Captured,
  capture,
  checkpoint,
  checkpointDue,
  endCheckpoint,
  stepAside,
  watchFromHere,
} from "./capture.ts";
import { type Found, type FoundBy, recover, type Undone } from "./recover.ts";
import { DatabaseBusy, type DatabaseOptions, DatabaseState, PositionMismatch, type TransactionInfo } from "./state.ts";

export class ReplicatedDatabase {
  readonly name: string;
  readonly path: string;
  /** How the position was found when it was opened. */
  readonly found_by: FoundBy;
  /** What somebody undid by restoring an older file. */
  readonly undone: Undone | undefined;
  /** Transactions of the log that the database had lost when it was opened, and that could not be put back. */
  readonly cut: number;
  /** True when a crash interrupted a snapshot: what is here is of no worth to anybody. */
  readonly half_replaced: boolean;
  readonly #state: DatabaseState;
  #applier: Applier | undefined;
  /** Since when writers wait. */
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
   * Opens it held, step by step: a large one may have to be read, and others must not wait for that. Throws at the first
   * step `DatabaseBusy`, or SQLite's own error, when applications do not let go, and SQLite's errors when it is none.
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
      if (NEW_TRANSACTION.has(found.by)) state.announceWhenDurable([info]);
      const settled = yield* settle(state, header);
      opened = true;
      return new ReplicatedDatabase(state, found, { ...settled, half });
    } finally {
      // An error, or nobody wants the rest of the steps.
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

  /** When the last transaction was written on its primary. */
  get timestamp_ms(): number {
    return this.#state.timestamp_ms;
  }

  /** Frames in SQLite's log. */
  get wal_frames(): number {
    return this.#state.files.indexHeader()?.frame ?? 0;
  }

  get held(): boolean {
    return this.#applier !== undefined;
  }

  /** True when its files are closed: from then on their descriptors are nobody's, or another file's. */
  get closed(): boolean {
    return this.#state.closed;
  }

  /** The term written beside transactions from now on. */
  set term(term: number) {
    this.#state.term = term;
  }

  // ——— held ———

  /** Lets applications write, and begins to capture. */
  release(): void {
    if (!this.held) return;
    this.log.syncNow();
    this.#applier = undefined;
    this.#state.watch();
    this.#state.connections.unlock();
  }

  /** Takes the write lock and captures what came before it. False when an application has it right now. */
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
  apply(files: readonly Buffer[], term: number, tell: "now" | "when durable" = "now"): void {
    this.#held().apply(files, term, tell);
  }

  /** While true the write lock is not let go of for a moment, not even to empty SQLite's log. */
  set pinned(pinned: boolean) {
    this.#state.pinned = pinned;
  }

  /** See `Applier.replace`. */
  replace(batches: Iterable<Page[]>, table: PageTable, position: Position, timestamp_ms: number): void {
    this.#held().replace(batches, table, position);
    this.#state.timestamp_ms = timestamp_ms;
  }

  /** What is here is the primary's state after this transaction, whatever was counted here. */
  setPosition(txid: number): void {
    const state = this.#state;
    state.log.reset(txid);
    state.position = { txid, checksum: state.position.checksum };
    state.saveTable();
  }

  // ——— capturing ———

  /** Takes what applications have committed since the last look, and tidies up when it is time. */
  capture(): Captured {
    const { clock } = this.#state.options;
    // Held for a replica that writes: nobody does so here.
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

  #checkpointWhilePaused(behind: number): void {
    if (behind === 0 && this.#state.cursor.frame >= this.#state.checkpoint_frames) endCheckpoint(this.#state);
  }

  /** True while writers wait for `slowWriters(false)`. */
  get paused(): boolean {
    return this.#paused_since_ms !== undefined;
  }

  /**
   * Writers are faster than what follows them: while `slow` they wait for the lock, but not for so long that they would
   * give up, unless it is `firm`. Without this SQLite's log would grow until the disk is full, and replicas be ever further
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

  /** Resolves when what is here now survives the machine; what comes meanwhile is not waited for. */
  async durable(): Promise<void> {
    const { txid } = this.position;
    if (this.log.durable >= txid) return;
    this.#state.syncLog();
    await this.log.reached(txid);
  }

  /** What is done now and then: `keep_after` names the first transactions that are needed elsewhere, too. */
  tidy(keep_after = Number.MAX_SAFE_INTEGER): void {
    this.#checkpointIfIdle();
    if (this.log.durable < this.log.last) this.#state.announceWhenDurable([]);
    this.#state.saveTableIfDue();
    this.#state.retain(keep_after);
  }

  /** A long log that nobody adds to any more would otherwise stay. */
  #checkpointIfIdle(): void {
    const state = this.#state;
    this.#applier?.truncateIfDue();
    if (this.held) return;
    state.shrinkLog();
    if (state.cursor.frame < state.checkpoint_frames) return;
    const { behind, transactions } = capture(state, REPLICATION_LIMITS.capture_frames);
    if (behind === 0 && transactions === 0) checkpoint(state);
  }

  blockSums(): string[] {
    return this.#state.table.blockSums();
  }

  /** The files and how much of them is the database now. Somebody must keep it from changing. */
  get source(): { files: DatabaseFiles; moment: Moment } {
    const { files, page_size, table } = this.#state;
    return { files, moment: { page_size, pages: table.count, frames: this.wal_frames } };
  }

  /** Runs `work` while nothing can be written and everything written is captured. False when an application writes. */
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

  /** The checksum after `txid`, as far back as the log goes. */
  checksumAt(txid: number): bigint | undefined {
    return txid === this.position.txid ? this.position.checksum : this.log.checksumAt(txid);
  }

  /** Records that the file is gone, and closes. */
  drop(): TransactionInfo {
    const header = this.#state.header(this.position.txid + 1, 0);
    return this.#dropBy(encodeLtx(header, [], NO_PAGES), this.#state.term);
  }

  /**
   * The same on a replica: the primary says that the database is gone. `moveAside` runs before that is recorded: after a
   * crash in between it is merely not there.
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
    state.announceDurable();
    state.close();
    // What SQLite keeps beside a database is of no use without it, and of harm to the next one of the name.
    for (const end of ["-wal", "-shm"]) rmSync(`${this.path}${end}`, { force: true });
    return state.info(0, timestamp_ms);
  }

  /**
   * Another file has its name, and this one has none any more. It must be held. What is known about it is left to
   * whoever opens the other file; the write lock stays until `abandon`, so that applications that still have this one
   * open are told "database is locked", instead of writing what nobody will ever read.
   */
  retire(): void {
    this.emptyLog();
    this.#state.saveTable();
    this.#state.announceDurable();
    this.#state.log.close();
  }

  /** True for the WAL that this database has open. */
  isOwnWal(identity: string | undefined): boolean {
    return identity === this.#state.files.identities.wal;
  }

  /** Leaves everything so that the next start need not read the database. */
  close(): void {
    const state = this.#state;
    // Emptying SQLite's log leaves a mark. When somebody is in the way, the next start has more to read.
    if (this.hold()) this.emptyLog();
    state.saveTable();
    state.announceDurable();
    state.close();
  }

  /** Copies SQLite's log back and empties it, unless somebody is in the way. It must be held. */
  emptyLog(): void {
    const { checkpointer, path } = this.#state.options;
    checkpointer?.settle(path);
    try {
      this.#held().truncate();
    } catch (error) {
      if (!(error instanceof PositionMismatch || error instanceof DatabaseBusy)) throw error;
    }
  }

  /** Closes without a word, as if the process had died. */
  abandon(): void {
    this.#state.close();
  }

  #held(): Applier {
    if (!this.#applier) throw new Error(`${this.name} is not held`);
    return this.#applier;
  }
}

/** Found so, the position is a transaction that nobody knows of yet. */
const NEW_TRANSACTION: ReadonlySet<FoundBy> = new Set(["nothing", "difference", "restored", "replaced"]);

function timestampOf({ log, options }: DatabaseState, txid: number): number {
  const ltx = log.read(txid);
  return ltx ? decodeHeader(ltx).timestamp_ms : options.clock.now();
}

function* find({ files, page_size, log, kept, options }: DatabaseState, header: IndexHeader): Steps<Found> {
  const { node_id, clock } = options;
  const parts = { files, page_size, header, log, kept, node_id, now_ms: clock.now() };
  try {
    return yield* recover(parts);
  } catch (error) {
    if (!isOurs(error)) throw error;
    // What was kept does not fit together. It goes aside, and the database is taken as it is.
    kept.setAside();
    log.reset(NOWHERE.txid);
    return yield* recover(parts);
  }
}

/** An error of the disk is no reason to throw away what was kept. */
const isOurs = (error: unknown): boolean => !(error instanceof Error && "syscall" in error);

/** Brings database and log together: what only one of them has goes to the other. `cut`: what had to be dropped. */
function* settle(state: DatabaseState, header: IndexHeader): Steps<{ applier: Applier; cut: number }> {
  const ahead = state.log.last - state.position.txid;
  const { cursor } = state;
  const uncaptured = header.frame > (sameGeneration(header, cursor) ? cursor.frame : 0);
  if (ahead > 0 && uncaptured) state.log.cutAfter(state.position.txid);
  while (uncaptured && capture(state, REPLICATION_LIMITS.capture_frames).behind > 0) yield;
  const applier = new Applier(state);
  if (ahead > 0 && !uncaptured) applier.rollForward();
  state.saveTable();
  state.kept.endReplacing();
  return { applier, cut: uncaptured ? Math.max(0, ahead) : 0 };
}
