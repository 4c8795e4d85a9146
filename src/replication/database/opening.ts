/** Opens a database: finds its position, then reconciles it with its log. */
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeHeader } from "../ltx/codec.ts";
import { NOWHERE } from "../position.ts";
import type { Steps } from "../steps.ts";
import { sameGeneration } from "../wal/frames.ts";
import type { IndexHeader } from "../wal/wal-index.ts";
import { Applier } from "./apply.ts";
import { capture } from "./capture.ts";
import { type Found, type FoundBy, recover } from "./recover.ts";
import type { DatabaseState } from "./state.ts";

/** Ways of finding the position in which it is a transaction that was not announced yet. */
const NEW_TRANSACTION: ReadonlySet<FoundBy> = new Set(["nothing", "difference", "restored", "replaced"]);

export const isNewTransaction = (by: FoundBy): boolean => NEW_TRANSACTION.has(by);

export function timestampOf({ log, options }: DatabaseState, txid: number): number {
  const ltx = log.read(txid);
  return ltx ? decodeHeader(ltx).timestamp_ms : options.clock.now();
}

export function* find({ files, page_size, log, kept, options }: DatabaseState, header: IndexHeader): Steps<Found> {
  const { node_id, clock, sizes } = options;
  const difference_bytes = sizes?.difference_bytes ?? REPLICATION_LIMITS.difference_bytes;
  const parts = { files, page_size, header, log, kept, node_id, now_ms: clock.now(), difference_bytes };
  try {
    return yield* recover(parts);
  } catch (error) {
    if (!isOurs(error)) throw error;
    // The stored state is inconsistent. It is moved aside, and the database is taken as it is.
    kept.setAside();
    log.reset(NOWHERE.txid);
    return yield* recover(parts);
  }
}

/** After an error of the disk the stored state is not dropped. */
const isOurs = (error: unknown): boolean => !(error instanceof Error && "syscall" in error);

/**
 * Reconciles database and log: each gets the transactions that only the other has. `cut`: how many had to be dropped.
 */
export function* settle(state: DatabaseState, header: IndexHeader): Steps<{ applier: Applier; cut: number }> {
  const ahead = state.log.last - state.position.txid;
  const { cursor } = state;
  const uncaptured = header.frame > (sameGeneration(header, cursor) ? cursor.frame : 0);
  if (ahead > 0 && uncaptured) state.log.cutAfter(state.position.txid);
  while (uncaptured && capture(state, REPLICATION_LIMITS.capture_frames).behind > 0) yield;
  const applier = new Applier(state);
  if (ahead > 0 && !uncaptured) applier.rollForward();
  state.saveTable();
  state.kept.forgetMarkOfSnapshot();
  state.kept.endReplacing();
  return { applier, cut: uncaptured ? Math.max(0, ahead) : 0 };
}
