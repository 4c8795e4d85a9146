/** One lease as a row somewhere: the least a store must be able to do for `RowLeases`. */
export interface LeaseRow {
  /** Goes up by one with every change of the row. */
  revision: number;
  /** The highest term that was ever given. */
  term: number;
  /** The last term that had a primary. */
  served_term: number;
  /** Who has it; null when nobody does. */
  node: string | null;
  url: string;
  /** Who alone may take it next; null when anybody may. */
  reserved_for: string | null;
  /** Who alone may be elected next, as JSON (`StoredInSync`); null when anybody may who was complete. */
  in_sync: string | null;
  /** How long this row counts when it is not changed: the lease's time to live, or the reservation's. */
  lasts_ms: number;
}

export interface LeaseRows {
  /** Undefined when there is none yet. Sees every change that was made before. */
  read(): Promise<LeaseRow | undefined>;
  /** Writes the row, durably, if the one there has revision `was` (0: if there is none). Otherwise false, and nothing. */
  swap(was: number, row: LeaseRow): Promise<boolean>;
  close(): Promise<void>;
}
