import type { InSync } from "./in-sync.ts";

/** Decides who may be primary. Each implementation passes `lease-store.suite.ts`. */

export interface Candidate {
  /** Id of the node. */
  node: string;
  /** URL for its replicas. */
  url: string;
  /** The highest term it has seen; the granted one is higher, even if the store has lost its data. */
  term: number;
  /** The highest term in which the node had every transaction of its primary. */
  complete_term: number;
}

export interface Lease {
  node: string;
  url: string;
  /** Increases with every new holder and is never reused: the fencing token of a primary. */
  term: number;
}

/**
 * One lease for one cluster. At most one node holds it at any time, by the store's own clock.
 *
 * A lease *expires* after its ttl; only the store decides that. The holder must stop by its own monotonic clock before
 * the store can consider it expired, counted from before the request.
 *
 * Every call returns the truth or throws; after a throw the outcome is unknown, and the caller must act as if it had
 * failed.
 */
export interface LeaseStore {
  /**
   * Grants a free lease to the candidate, with a higher term than ever before. Undefined when another node holds it,
   * when it is reserved for another, or when the candidate was not complete, or not in sync, in the last term that had
   * a primary: electing it would lose transactions. `force` overrides only these last reasons. A candidate that already
   * holds it gets a new one with a higher term.
   */
  acquire(candidate: Candidate, ttl_ms: number, force?: boolean): Promise<Lease | undefined>;

  /**
   * Restarts the ttl. Returns false when the lease was lost. The first renewal records that the term has a primary;
   * nothing may be accepted before it succeeded. `in_sync`: only these may be elected next; stored when this returns
   * true. A lower version than the stored one changes nothing.
   */
  renew(lease: Lease, ttl_ms: number, in_sync?: InSync): Promise<boolean>;

  /** Releases the lease; only `successor` may take it for a while. Does nothing when it was lost. */
  release(lease: Lease, successor?: { node: string; for_ms: number }): Promise<void>;

  /** The current holder. */
  holder(): Promise<Lease | undefined>;

  close(): Promise<void>;
}
