/**
 * The nodes that have every acknowledged transaction, and so may be elected next, as stored in a lease store. The
 * primary of a term writes it; a late request must not restore an older list, so lists of one term are numbered.
 */
export interface InSync {
  /** Incremented with every list of a term. */
  version: number;
  /** Node ids, including the primary's own. */
  nodes: readonly string[];
}

export interface StoredInSync extends InSync {
  term: number;
}

export function readInSync(text: string | null | undefined): StoredInSync | null {
  return text ? (JSON.parse(text) as StoredInSync) : null;
}

/** Merges the stored list with that of a term's primary. A primary without a list lets anyone stand. */
export function newerInSync(stored: StoredInSync | null, term: number, said: InSync | undefined): StoredInSync | null {
  if (!said) return null;
  if (stored?.term === term && stored.version >= said.version) return stored;
  return { term, version: said.version, nodes: said.nodes };
}

/** After a handover both the old and the new primary have everything. */
export function inSyncAfterHandOff(stored: StoredInSync | null, from: string, to: string): StoredInSync | null {
  return stored && { ...stored, version: stored.version + 1, nodes: [from, to] };
}

export function mayStand(stored: StoredInSync | null, node: string): boolean {
  return stored === null || stored.nodes.includes(node);
}
