/** Finds, before joining a primary, the local databases that diverge from its own, and since when. */
import type { ReplicatedDatabase } from "../database/database.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { hex16 } from "../position.ts";
import type { Directory } from "./directory.ts";
import type { Peer } from "./peer.ts";

/** What a node knows about one of its databases at a requested txid. */
export interface KnownPosition {
  /** 16 hex digits; absent when the log does not have it. */
  checksum?: string;
  first: number;
  last: number;
  /** The transaction with the same state as the requester's; absent when unknown. */
  same?: number;
}

/** Requested transactions by database and, for some, the checksum of the requester's state. */
export interface AskedPositions {
  databases: Record<string, number>;
  checksums?: Record<string, string>;
}

export interface Divergence {
  /** The last common transaction; undefined when the logs do not go back that far. */
  common: number | undefined;
  /** Transactions that only this node has; a minimum when `common` is undefined. */
  dropped: number;
}

/** The response to POST /positions. */
export function knownPositions(directory: Directory, requested: AskedPositions): Record<string, KnownPosition> {
  const known: Record<string, KnownPosition> = {};
  for (const [name, txid] of Object.entries(requested.databases)) {
    const database = directory.get(name);
    if (!database) continue;
    const checksum = database.checksumAt(txid);
    const state = requested.checksums?.[name];
    const same = state === undefined ? undefined : findState(database, state);
    known[name] = {
      first: database.log.base,
      last: database.position.txid,
      ...(checksum ? { checksum: hex16(checksum) } : {}),
      ...(same === undefined ? {} : { same }),
    };
  }
  return known;
}

/** The newest transaction with this checksum. */
function findState(database: ReplicatedDatabase, checksum: string): number | undefined {
  const { txid } = database.position;
  const oldest = Math.max(database.log.base, txid - REPLICATION_LIMITS.states_compared);
  for (let at = txid; at >= oldest; at--) {
    const known = database.checksumAt(at);
    if (known !== undefined && hex16(known) === checksum) return at;
  }
  return undefined;
}

type Query = (name: string, txid: number, checksum?: string) => Promise<KnownPosition | undefined>;

/**
 * Databases that differ from the primary's. One that is merely behind does not; one whose state belongs to another
 * transaction is corrected. `only`: of one database.
 */
export async function findDivergences(
  directory: Directory,
  peer: Peer,
  signal: AbortSignal,
  only?: string,
): Promise<Map<string, Divergence>> {
  const databases = [...directory].filter(({ name }) => only === undefined || name === only);
  const requested: Record<string, number> = {};
  for (const { name, position } of databases) requested[name] = position.txid;
  const post = async (question: AskedPositions): Promise<Record<string, KnownPosition>> =>
    (await peer.json("POST", "/positions", question, signal)) as Record<string, KnownPosition>;
  const query: Query = async (name, txid, checksum) => {
    const checksums = checksum === undefined ? {} : { checksums: { [name]: checksum } };
    return (await post({ databases: { [name]: txid }, ...checksums }))[name];
  };
  const answers = await post({ databases: requested });
  const found = new Map<string, Divergence>();
  for (const database of databases) {
    const theirs = answers[database.name];
    const divergence = theirs && (await compare(database, theirs, query));
    if (divergence) found.set(database.name, divergence);
  }
  return found;
}

async function compare(
  database: ReplicatedDatabase,
  theirs: KnownPosition,
  query: Query,
): Promise<Divergence | undefined> {
  const { txid, checksum } = database.position;
  if (theirs.checksum === hex16(checksum)) return undefined;
  // Older than anything the primary can compare: a snapshot suffices, no loss is known.
  if (txid < theirs.first) return undefined;
  // After a power cut SQLite's WAL can have more than ours, and batched transactions count as one.
  const same = (await query(database.name, txid, hex16(checksum)))?.same;
  if (same !== undefined) {
    database.setPosition(same);
    return undefined;
  }
  // Equal up to some transaction and different after it, so a binary search finds it.
  let low = Math.max(theirs.first, database.log.base) - 1;
  let high = Math.min(theirs.last, txid);
  const lowest = low;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const mine = database.checksumAt(middle);
    const answer = await query(database.name, middle);
    const same = mine !== undefined && answer?.checksum === hex16(mine);
    if (same) low = middle;
    else high = middle - 1;
  }
  const common = low > lowest ? low : undefined;
  return { common, dropped: txid - low };
}
