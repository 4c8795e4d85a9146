/** The primary's side: what applications commit becomes transactions in the log, each exactly once and in order. */
import type { LogRecord } from "../log/record.ts";
import { encodeLtx } from "../ltx/codec.ts";
import { sameGeneration } from "../wal/frames.ts";
import { readTransactions, type WalTransaction } from "../wal/read-transactions.ts";
import type { DatabaseState, TransactionInfo } from "./state.ts";

export interface Captured {
  transactions: number;
  /** False when more was there than was asked for. */
  all: boolean;
}

const NOTHING: Captured = { transactions: 0, all: true };

/** Looks at SQLite's log and takes what was committed since the last look; about `most` frames of it. */
export function capture(state: DatabaseState, most = Number.POSITIVE_INFINITY): Captured {
  const header = state.files.indexHeader();
  if (!header || header.frame === 0) return NOTHING;
  if (!sameGeneration(header, state.cursor)) {
    const start = state.files.walHeader();
    // A writer has announced a new generation and not yet written its header.
    if (!start || !sameGeneration(start, header)) return NOTHING;
    state.cursor = start;
  }
  if (header.frame <= state.cursor.frame) return NOTHING;
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
  return { transactions: records.length, all: state.cursor.frame >= header.frame };
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

/**
 * True when SQLite's log is long enough to be worth copying back. While there is more to capture, that can wait; but
 * not for ever, and then it is the writers who wait.
 */
export function checkpointDue(state: DatabaseState, { all }: Captured): boolean {
  return state.cursor.frame >= (all ? state.checkpoint_at : state.checkpoint_at + 4 * state.checkpoint_frames);
}

/**
 * Copies SQLite's log back into the database, most of it without a lock, the end of it with. Afterwards the
 * next writer may start the log over, once: our read transaction then forbids that anything of the new log is
 * copied back, so it cannot be started over again before we have seen all of it.
 */
export function checkpoint(state: DatabaseState): void {
  const { connections, log } = state;
  const captureAll = (): void => {
    capture(state);
  };
  connections.moveWatch(captureAll);
  connections.checkpoint("PASSIVE");
  state.checkpoint_at = state.cursor.frame + state.checkpoint_frames / 4;
  if (!state.tryHoldBriefly()) return;
  try {
    connections.moveWatch(captureAll);
    // What leaves SQLite's log must be in ours for good.
    log.syncNow();
    if (!connections.checkpoint("PASSIVE").complete) return;
    state.mark();
    connections.moveWatch(captureAll);
    state.checkpoint_at = state.checkpoint_frames;
  } finally {
    connections.letGo();
    state.announceDurable();
  }
}
