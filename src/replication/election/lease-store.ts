import type { InSync } from "./in-sync.ts";

/** Who may be primary. Implementations are in this folder and elsewhere; each passes `lease-store.suite.ts`. */

export interface Candidate {
  /** Id of the node. */
  node: string;
  /** Where its replicas reach it. */
  url: string;
  /** The highest term it has heard of; it is given a higher one even by a store that has forgotten. */
  term: number;
  /** The highest term in which the node had every transaction its primary had. */
  complete_term: number;
}

export interface Lease {
  node: string;
  url: string;
  /** Goes up with every change of hands, and is never used twice. The fencing number of everything a primary does. */
  term: number;
}

/**
 * One lease for one cluster. At most one node has it at any time, by the store's own clock.
 *
 * Terms: to *expire* is to be older than its time to live; the store alone judges that. Whoever had the lease must
 * stop by its own monotonic clock before the store can think so: counted from before it asked.
 *
 * Every call either tells the truth or throws; after a throw the caller does not know whether it happened, and must
 * behave as if it had not.
 */
export interface LeaseStore {
  /**
   * Gives the lease to the candidate when nobody has it, with a higher term than ever before. Undefined when
   * somebody else has it, when it is reserved for somebody else, or when the candidate was not complete in the last
   * term that had a primary, or not in sync with it: it would take transactions away from everybody. `force` overrides
   * these last reasons, and only them. A candidate that has the lease itself gets it anew, with a higher term.
   */
  acquire(candidate: Candidate, ttl_ms: number, force?: boolean): Promise<Lease | undefined>;

  /**
   * Starts the time to live anew. False when the lease is no longer this one; then it is lost for good. The first
   * renewal says that the term now has a primary; nothing may be accepted before it has succeeded. `in_sync`: only these
   * may be elected next; it is stored when this has answered true. A lower version than is stored changes nothing.
   */
  renew(lease: Lease, ttl_ms: number, in_sync?: InSync): Promise<boolean>;

  /** Gives the lease back; `successor` alone may take it for a while. Nothing happens when it is no longer this one. */
  release(lease: Lease, successor?: { node: string; for_ms: number }): Promise<void>;

  /** Whoever has the lease now. */
  holder(): Promise<Lease | undefined>;

  close(): Promise<void>;
}
