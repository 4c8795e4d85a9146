/** The replica's side: transactions of the primary are appended to SQLite's log while this process holds its lock. */
import { REPLICATION_LIMITS } from "../limits.ts";
import type { LogRecord } from "../log/record.ts";
import { decodeLtx, type Ltx } from "../ltx/codec.ts";
import type { Page, PageTable } from "../ltx/page-table.ts";
import type { Position } from "../position.ts";
import { sameGeneration, type WalCursor } from "../wal/frames.ts";
import { WalWriter } from "../wal/wal-writer.ts";
import { type DatabaseState, PositionMismatch, type TransactionInfo } from "./state.ts";

export class Applier {
  readonly #state: DatabaseState;
  #writer: WalWriter;

  /** The write lock must be held throughout. */
  constructor(state: DatabaseState) {
    this.#state = state;
    this.#writer = this.#newWriter();
  }

  /**
   * Applies consecutive transactions as one change for readers: SQLite's WAL gets only the last content of each page,
   * our log each transaction. Applies those before the first that does not fit, then throws `PositionMismatch` or
   * `LtxError`. `announce`: a primary announces only durable ones.
   */
  apply(files: readonly Buffer[], term: number, announce: "now" | "when durable" = "now"): void {
    const state = this.#state;
    const accepted: { txid: number; ltx: Buffer }[] = [];
    const infos: TransactionInfo[] = [];
    const newest = new Map<number, Page>();
    let refused: Error | undefined;
    for (const bytes of files) {
      try {
        const ltx = decodeLtx(bytes);
        this.#accept(ltx);
        for (const page of ltx.pages) newest.set(page.number, page);
        accepted.push({ txid: ltx.header.max_txid, ltx: bytes });
        infos.push(state.info(ltx.header.commit, ltx.header.timestamp_ms));
      } catch (error) {
        refused = error instanceof Error ? error : new Error(String(error));
        break;
      }
    }
    if (accepted.length > 0) {
      const cursor = this.#writer.stage([...newest.values()], state.table.count);
      const last = accepted.length - 1;
      this.#publish(
        accepted.map((record, i) => ({ ...record, term, cursor: i === last ? cursor : undefined })),
        cursor,
      );
      if (announce === "when durable") {
        state.announceWhenDurable(infos);
      } else {
        state.options.onTransactions(infos);
        state.syncLogSoon();
      }
      this.truncateIfDue();
    }
    if (refused) throw refused;
  }

  #publish(records: readonly LogRecord[], cursor: WalCursor): void {
    const state = this.#state;
    // Not cached: the buffers belong to the network, and no other node reads them from a replica.
    state.append(records, false);
    state.step("logged");
    this.#writer.publish();
    state.cursor = cursor;
  }

  /** Verifies everything before anything is written. */
  #accept({ header, pages, post_checksum }: Ltx): void {
    const state = this.#state;
    const { txid, checksum } = state.position;
    const what = `${state.options.name}: transaction ${header.min_txid}`;
    if (header.min_txid !== txid + 1 || header.max_txid !== txid + 1 || header.pre_checksum !== checksum) {
      throw new PositionMismatch(`${what} does not follow ${txid}`);
    }
    if (header.page_size !== state.page_size || pages.length === 0) {
      throw new PositionMismatch(`${what} is for another database`);
    }
    const change = state.table.change(pages, header.commit);
    if (change.checksum !== post_checksum) throw new PositionMismatch(`${what} does not lead to its checksum`);
    state.table.accept(change);
    state.position = { txid: header.max_txid, checksum: post_checksum };
  }

  /** Restores the end of SQLite's WAL, which was lost because the application had not synced it, from our log. */
  rollForward(): void {
    const state = this.#state;
    for (let txid = state.position.txid + 1; txid <= state.log.last; txid++) {
      const bytes = state.log.read(txid);
      if (!bytes) continue;
      const ltx = decodeLtx(bytes);
      this.#accept(ltx);
      state.cursor = this.#writer.stage(ltx.pages, ltx.header.commit);
    }
    this.#writer.publish();
  }

  /**
   * Replaces the whole database through its WAL, so that readers see the old or the new one. `batches` are all pages in
   * order; `position` is the new position.
   */
  replace(batches: Iterable<Page[]>, table: PageTable, position: Position): void {
    const state = this.#state;
    const writer = this.#writer;
    // A crash from here to the end leaves an unknown state, so no position is claimed.
    state.kept.beginReplacing();
    state.log.reset(0);
    let held_back: Page | undefined;
    for (const batch of batches) {
      const last = batch.at(-1);
      writer.stage([...(held_back ? [held_back] : []), ...batch.slice(0, -1)], 0);
      writer.flush();
      held_back = last && { number: last.number, data: Buffer.from(last.data) };
    }
    if (!held_back) throw new PositionMismatch(`${state.options.name}: a snapshot without pages`);
    state.cursor = writer.stage([held_back], table.count);
    writer.publish();
    state.table = table;
    state.position = position;
    state.log.reset(position.txid);
    state.saveTable();
    state.kept.endReplacing();
    this.truncateIfDue();
  }

  /** Truncates a long WAL, mostly in the background. */
  truncateIfDue(): void {
    const state = this.#state;
    if (state.pinned) return;
    if (this.#writer.frame >= state.checkpoint_at && state.copiedMost()) this.truncate();
  }

  /**
   * Checkpoints and truncates SQLite's WAL. SQLite needs the lock for that, so it is released for a moment; a write in
   * that moment can be detected.
   */
  truncate(): void {
    const state = this.#state;
    const { connections } = state;
    state.log.syncNow();
    const before = this.#writer.header;
    connections.unlock();
    state.step("unlocked");
    const { busy } = connections.checkpoint("TRUNCATE", patienceWith(before.frame, state.checkpoint_frames));
    state.step("truncated");
    state.holdWithin(REPLICATION_LIMITS.relock_ms);
    state.step("relocked");
    const after = state.headerUnderLock();
    const emptied = after.frame === 0 && after.salt1 === (before.salt1 + 1) >>> 0;
    const untouched = after.frame === before.frame && sameGeneration(after, before);
    // A commit before the truncation leaves an empty log, too, but it is counted.
    if ((!emptied && !untouched) || after.change !== before.change)
      throw new PositionMismatch(`${state.options.name} was written by somebody else`);
    this.#writer = this.#newWriter();
    state.checkpoint_at = busy ? after.frame + state.checkpoint_frames / 4 : state.checkpoint_frames;
    if (emptied) state.mark();
  }

  #newWriter(): WalWriter {
    const state = this.#state;
    return new WalWriter(state.files, state.page_size, state.headerUnderLock(), state.options.step);
  }
}

/** Gives short readers a moment to finish, longer if the WAL is too large. */
function patienceWith(frames: number, usual: number): number {
  return frames > usual * 4 ? 100 : 5;
}
