/** The primary's side: what applications commit becomes transactions in the log, each exactly once and in order. */
import { REPLICATION_LIMITS } from "../limits.ts";
import type { LogRecord } from "../log/record.ts";
import { encodeLtx } from "../ltx/codec.ts";
import { sameGeneration } from "../wal/frames.ts";
import { readTransactions, type WalTransaction } from "../wal/read-transactions.ts";
import type { DatabaseState, TransactionInfo } from "./state.ts";

export interface Captured {
  transactions: number;
  /** Frames not yet captured. */
  behind: number;
  /** Throttle writers until everything is captured and the WAL is short. */
  too_fast?: boolean;
}

/** Reads transactions committed to SQLite's WAL since the last call; about `most` frames. */
export function capture(state: DatabaseState, most = Number.POSITIVE_INFINITY): Captured {
  const header = state.files.indexHeader();
  if (!header || header.frame === 0) return { transactions: 0, behind: 0 };
  if (!sameGeneration(header, state.cursor)) {
    const start = state.files.walHeader();
    // A writer has announced a new generation but not yet written its header.
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

/** True when something was committed since the last check. */
export function hasUncaptured({ files, cursor }: DatabaseState): boolean {
  const header = files.indexHeader();
  if (!header || header.frame === 0) return false;
  return !(sameGeneration(header, cursor) && header.frame <= cursor.frame);
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

/** Captures everything up to now, in pieces; later commits are not waited for. */
function captureAll(state: DatabaseState): void {
  const now = state.files.indexHeader();
  let behind = 1;
  while (now && behind > 0 && !(sameGeneration(state.cursor, now) && state.cursor.frame >= now.frame)) {
    behind = capture(state, REPLICATION_LIMITS.capture_frames).behind;
  }
}

/**
 * Moves our read transaction behind the current frame. One before the first frame blocks every checkpoint, and
 * applications retry after each commit, sorting the whole WAL each time. From behind a frame they can checkpoint up to
 * there.
 */
export function watchFromHere(state: DatabaseState): void {
  if (state.cursor.frame === 0 || sameGeneration(state.cursor, state.watched)) return;
  moveToEnd(state);
}

/**
 * Lets an application run a `FULL`, `RESTART` or `TRUNCATE` checkpoint: it holds the write lock and waits for readers.
 * Nothing is written then, so everything is captured quickly, and our read transaction moves to the end of the WAL,
 * then out of it.
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
    // What is checkpointed must be durable in our log.
    state.log.syncNow();
  });
  state.watched = state.cursor;
  state.announceDurable();
}

/** Whether SQLite's WAL is long enough for a checkpoint. */
export function checkpointDue(state: DatabaseState): boolean {
  return state.cursor.frame >= state.checkpoint_at;
}

/**
 * Checkpoints SQLite's WAL, mostly without a lock, the end with it. Afterwards the next writer may restart the WAL,
 * once: our read transaction then blocks checkpoints, so it cannot restart again before we have captured it.
 */
export function checkpoint(state: DatabaseState): void {
  const { connections } = state;
  if (state.bulk === "idle") {
    // Frames after the start of our read transaction cannot be checkpointed.
    state.moveWatch(() => captureAll(state));
    state.bulk_frame = state.cursor.frame;
  }
  if (!state.copiedMost()) return;
  // When much was written meanwhile, that is also copied without a lock first.
  if (state.cursor.frame - state.bulk_frame > state.checkpoint_frames / 2) return;
  state.checkpoint_at = state.cursor.frame + state.checkpoint_frames / 4;
  // On a slow disk a writer holds the lock nearly all the time, and the WAL would grow forever.
  const grown = state.cursor.frame >= state.checkpoint_frames * 2;
  if (!(grown ? state.insistOnHolding(REPLICATION_LIMITS.insist_ms) : state.tryHoldBriefly())) return;
  try {
    endCheckpoint(state);
  } finally {
    connections.unlock();
    state.announceDurable();
  }
}

/** Checkpoints the end with the write lock, which stays held. */
export function endCheckpoint(state: DatabaseState): void {
  const { connections, log } = state;
  state.moveWatch(() => captureAll(state));
  // What leaves SQLite's WAL must be durable in ours.
  log.syncNow();
  // Checkpointing takes a while; durable transactions are announced before it.
  state.announceDurable();
  if (!connections.checkpoint("PASSIVE").complete) {
    if (state.bulk !== "running") state.waitForReader();
    return;
  }
  state.mark();
  state.moveWatch(() => captureAll(state));
  state.copiedAll();
}
