/**
 * Which nodes have every transaction that was acknowledged, and so may be elected next, as a lease store keeps it. The primary
 * of a term writes it; a request that was late must not bring back an older list, so lists of one term are numbered.
 */
export interface InSync {
  /** Goes up with every list of a term. */
  version: number;
  /** Ids of nodes, the primary's own among them. */
  nodes: readonly string[];
}

export interface StoredInSync extends InSync {
  term: number;
}

export function readInSync(text: string | null | undefined): StoredInSync | null {
  return text ? (JSON.parse(text) as StoredInSync) : null;
}

/** What to keep of what is stored and what the primary of a term now says. A primary that says nothing lets anybody stand. */
export function newerInSync(stored: StoredInSync | null, term: number, said: InSync | undefined): StoredInSync | null {
  if (!said) return null;
  if (stored?.term === term && stored.version >= said.version) return stored;
  return { term, version: said.version, nodes: said.nodes };
}

/** After a handover both have everything: who gave the lease away, and who is to take it. */
export function inSyncAfterHandOff(stored: StoredInSync | null, from: string, to: string): StoredInSync | null {
  return stored && { ...stored, version: stored.version + 1, nodes: [from, to] };
}

export function mayStand(stored: StoredInSync | null, node: string): boolean {
  return stored === null || stored.nodes.includes(node);
}
