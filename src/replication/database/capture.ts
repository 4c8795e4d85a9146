/** The primary's side: what applications commit becomes transactions in the log, each exactly once and in order. */
import { REPLICATION_LIMITS } from "../limits.ts";
import type { LogRecord } from "../log/record.ts";
import { encodeLtx } from "../ltx/codec.ts";
import { sameGeneration } from "../wal/frames.ts";
import { readTransactions, type WalTransaction } from "../wal/read-transactions.ts";
import type { DatabaseState, TransactionInfo } from "./state.ts";

export interface Captured {
  transactions: number;
  /** Frames that are there and were not captured yet. */
  behind: number;
  /** Writers are to wait until everything is captured and the log is not too long any more. */
  too_fast?: boolean;
}

/** Looks at SQLite's log and takes what was committed since the last look; about `most` frames of it. */
export function capture(state: DatabaseState, most = Number.POSITIVE_INFINITY): Captured {
  const header = state.files.indexHeader();
  if (!header || header.frame === 0) return { transactions: 0, behind: 0 };
  if (!sameGeneration(header, state.cursor)) {
    const start = state.files.walHeader();
    // A writer has announced a new generation and not yet written its header.
    if (!start || !sameGeneration(start, header)) return { transactions: 0, behind: 0 };
    state.cursor = start;
  }
  if (header.frame <= state.cursor.frame) return { transactions: 0, behind: 0 };
  const enough = state.cursor.frame + most;
  const records: LogRecord[] = [];
  const infos: TransactionInfo[] = [];
  for (const transaction of readTransactions(state.files, state.page_size, state.cursor, header.frame)) {
    const now_ms = state.options.clock.now();
    records.push(record(state, transaction, now_ms));
    infos.push(state.info(transaction.commit, now_ms));
    if (transaction.cursor.frame >= enough) break;
  }
  state.append(records);
  state.announceWhenDurable(infos);
  return { transactions: records.length, behind: header.frame - state.cursor.frame };
}

function record(state: DatabaseState, transaction: WalTransaction, timestamp_ms: number): LogRecord {
  const { pages, commit, offset, size, cursor } = transaction;
  const change = state.table.change(pages, commit);
  const txid = state.position.txid + 1;
  const header = { ...state.header(txid, commit), timestamp_ms, wal_offset: offset, wal_size: size };
  const ltx = encodeLtx(header, pages, change.checksum);
  state.table.accept(change);
  state.position = { txid, checksum: change.checksum };
  return { txid, term: state.term, cursor, ltx };
}

/** Everything there is now, in pieces, so that it does not have to fit in memory; what comes meanwhile is not waited for. */
function captureAll(state: DatabaseState): void {
  const now = state.files.indexHeader();
  let behind = 1;
  while (now && behind > 0 && !(sameGeneration(state.cursor, now) && state.cursor.frame >= now.frame)) {
    behind = capture(state, REPLICATION_LIMITS.capture_frames).behind;
  }
}

/**
 * A read transaction from before the first frame of a log lets nothing of it be copied back, and applications find that
 * out anew after every commit, each time by sorting the whole log. From behind a frame it lets them copy up to there,
 * after which there is nothing for them to try.
 */
export function watchFromHere(state: DatabaseState): void {
  if (state.cursor.frame === 0 || sameGeneration(state.cursor, state.watched)) return;
  moveToEnd(state);
}

/**
 * An application that wants all of the log copied back (`wal_checkpoint(FULL)`), or begun anew (`RESTART`, `TRUNCATE`), has the
 * write lock and waits for readers to be at its end, or out of it. Nothing is written then, so everything is captured in
 * a moment, and our read transaction can be where it is not in the way: at the end, and then in the database alone.
 */
export function stepAside(state: DatabaseState): void {
  const { log, cursor, files } = state;
  if (log.durable < log.last || !state.watch_is_old) return;
  const header = files.indexHeader();
  if (!header || (header.frame > 0 && !(sameGeneration(header, cursor) && header.frame === cursor.frame))) return;
  moveToEnd(state);
}

function moveToEnd(state: DatabaseState): void {
  state.moveWatch(() => {
    captureAll(state);
    // What is copied back must be in our log for good.
    state.log.syncNow();
  });
  state.watched = state.cursor;
  state.announceDurable();
}

/** True when SQLite's log is long enough to be worth copying back. */
export function checkpointDue(state: DatabaseState): boolean {
  return state.cursor.frame >= state.checkpoint_at;
}

/**
 * Copies SQLite's log back into the database, most of it without a lock, the end of it with. Afterwards the
 * next writer may start the log over, once: our read transaction then forbids that anything of the new log is
 * copied back, so it cannot be started over again before we have seen all of it.
 */
export function checkpoint(state: DatabaseState): void {
  const { connections } = state;
  if (state.bulk === "idle") {
    // What came after our own read transaction began cannot be copied.
    state.moveWatch(() => captureAll(state));
    state.bulk_frame = state.cursor.frame;
  }
  if (!state.copiedMost()) return;
  // So much was written meanwhile that the end would take long: that, too, is copied without a lock first.
  if (state.cursor.frame - state.bulk_frame > state.checkpoint_frames / 2) return;
  state.checkpoint_at = state.cursor.frame + state.checkpoint_frames / 4;
  // On a slow disk a writer holds the lock for all of its time but microseconds, and the log would grow for ever.
  const grown = state.cursor.frame >= state.checkpoint_frames * 2;
  if (!(grown ? state.insistOnHolding(REPLICATION_LIMITS.insist_ms) : state.tryHoldBriefly())) return;
  try {
    endCheckpoint(state);
  } finally {
    connections.unlock();
    state.announceDurable();
  }
}

/** The end of it, with the write lock, which stays. */
export function endCheckpoint(state: DatabaseState): void {
  const { connections, log } = state;
  state.moveWatch(() => captureAll(state));
  // What leaves SQLite's log must be in ours for good.
  log.syncNow();
  // Copying back takes a while, and what is durable need not wait for it.
  state.announceDurable();
  if (!connections.checkpoint("PASSIVE").complete) {
    if (state.bulk !== "running") state.waitForReader();
    return;
  }
  state.mark();
  state.moveWatch(() => captureAll(state));
  state.copiedAll();
}
