/** Finding out, before joining a primary, which databases here do not follow from its own, and since when. */
import type { ReplicatedDatabase } from "../database/database.ts";
import { hex16 } from "../position.ts";
import type { Directory } from "./directory.ts";
import type { Peer } from "./peer.ts";

/** What a node knows about one of its databases at a txid somebody asked for. */
export interface KnownPosition {
  /** 16 hex digits; absent when the log does not go there. */
  checksum?: string;
  first: number;
  last: number;
}

export interface Divergence {
  /** The last transaction both have; undefined when the logs do not go back so far. */
  common: number | undefined;
  /** Transactions only this node has; at least so many when `common` is undefined. */
  dropped: number;
}

/** The answer to POST /positions: `asked` are txids by database name. */
export function knownPositions(directory: Directory, asked: Record<string, number>): Record<string, KnownPosition> {
  const known: Record<string, KnownPosition> = {};
  for (const [name, txid] of Object.entries(asked)) {
    const database = directory.get(name);
    if (!database) continue;
    const checksum = database.checksumAt(txid);
    const { base } = database.log;
    known[name] = { first: base, last: database.position.txid, ...(checksum ? { checksum: hex16(checksum) } : {}) };
  }
  return known;
}

type Ask = (name: string, txid: number) => Promise<KnownPosition | undefined>;

/** The databases that differ from the primary's. One that is merely behind does not. */
export async function findDivergences(
  directory: Directory,
  peer: Peer,
  signal: AbortSignal,
): Promise<Map<string, Divergence>> {
  const asked: Record<string, number> = {};
  for (const { name, position } of directory) asked[name] = position.txid;
  const post = async (databases: Record<string, number>): Promise<Record<string, KnownPosition>> =>
    (await peer.json("POST", "/positions", { databases }, signal)) as Record<string, KnownPosition>;
  const ask: Ask = async (name, txid) => (await post({ [name]: txid }))[name];
  const answers = await post(asked);
  const found = new Map<string, Divergence>();
  for (const database of directory) {
    const theirs = answers[database.name];
    const divergence = theirs && (await compare(database, theirs, ask));
    if (divergence) found.set(database.name, divergence);
  }
  return found;
}

async function compare(database: ReplicatedDatabase, theirs: KnownPosition, ask: Ask): Promise<Divergence | undefined> {
  const { txid, checksum } = database.position;
  if (theirs.checksum === hex16(checksum)) return undefined;
  // Older than anything the primary can compare with: a snapshot will do, nothing is known to be lost.
  if (txid < theirs.first) return undefined;
  // Equal up to somewhere, different from there on: so the end of what is equal can be found by halving.
  let low = Math.max(theirs.first, database.log.base) - 1;
  let high = Math.min(theirs.last, txid);
  const lowest = low;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const mine = database.checksumAt(middle);
    const answer = await ask(database.name, middle);
    const same = mine !== undefined && answer?.checksum === hex16(mine);
    if (same) low = middle;
    else high = middle - 1;
  }
  const common = low > lowest ? low : undefined;
  return { common, dropped: txid - low };
}
