/** Logged deletions. A database whose file is merely missing does not count as deleted: the reason is unknown. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { TransactionLog } from "../log/transaction-log.ts";
import { decodeHeader } from "../ltx/codec.ts";
import { PageTable } from "../ltx/page-table.ts";
import { NO_PAGES, type Position } from "../position.ts";
import { PersistedState } from "./persisted-state.ts";

export type Known =
  /** Nothing is known about the name. */
  | { kind: "nothing" }
  /** The database was deleted. */
  | { kind: "deleted"; at: Position }
  /** The database existed. */
  | { kind: "database" };

/** The stored knowledge about a database that is not open. */
export function lastKnown(dir: string): Known {
  if (!existsSync(dir)) return { kind: "nothing" };
  const position = new PersistedState(dir).loadTable()?.position;
  if (position?.checksum === NO_PAGES) return { kind: "deleted", at: position };
  // A crash can happen between the log and the table.
  const log = new TransactionLog(join(dir, "log"));
  const last = log.read(log.last);
  log.close();
  if (last && decodeHeader(last).commit === 0) {
    return { kind: "deleted", at: { txid: decodeHeader(last).max_txid, checksum: NO_PAGES } };
  }
  return position || last ? { kind: "database" } : { kind: "nothing" };
}

/** Records a deletion that another node logged. */
export function recordDeletion(dir: string, at: Position, page_size: number): void {
  new PersistedState(dir).saveTable({
    position: at,
    cursor: undefined,
    table: new PageTable(page_size),
    files: undefined,
  });
}
