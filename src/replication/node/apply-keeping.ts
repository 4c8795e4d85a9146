/** Applies transactions on a replica; what is there is kept before one that may undo earlier ones. */
import type { ReplicatedDatabase } from "../database/database.ts";
import { isDifference } from "../database/recover.ts";
import { decodeHeader } from "../ltx/codec.ts";

/** `keep` runs before a transaction that is another file's difference. Throws as `ReplicatedDatabase.apply`. */
export function applyKeeping(
  database: ReplicatedDatabase,
  files: readonly Buffer[],
  term: number,
  keep: () => void,
): void {
  const headers = files.map(decodeHeader);
  let applied = 0;
  for (const [i, header] of headers.entries()) {
    if (!isDifference(header)) continue;
    database.apply(files.slice(applied, i), term);
    applied = i;
    if (header.min_txid === database.position.txid + 1) keep();
  }
  database.apply(files.slice(applied), term);
}
