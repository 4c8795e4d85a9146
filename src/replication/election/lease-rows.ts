/** One lease as a row somewhere: the least a store must be able to do for `RowLeases`. */
export interface LeaseRow {
  /** Incremented with every change of the row. */
  revision: number;
  /** The highest term ever granted. */
  term: number;
  /** The last term that had a primary. */
  served_term: number;
  /** The holder; null when there is none. */
  node: string | null;
  url: string;
  /** The only node that may take it next; null for any. */
  reserved_for: string | null;
  /** The only nodes that may be elected next, as JSON (`StoredInSync`); null for any complete one. */
  in_sync: string | null;
  /** Validity of an unchanged row: the lease's ttl, or the reservation's. */
  lasts_ms: number;
}

export interface LeaseRows {
  /** Undefined when there is none yet. Sees all earlier changes. */
  read(): Promise<LeaseRow | undefined>;
  /** Writes the row durably if the current revision is `was` (0: no row). Returns false otherwise. */
  swap(was: number, row: LeaseRow): Promise<boolean>;
  close(): Promise<void>;
}
