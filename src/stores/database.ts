/**
 * What keeps everything: a SQL database behind two verbs. SQLite and PostgreSQL implement it, both pass
 * `database.suite.ts`.
 *
 * A *write* is data, not a conversation: a list of steps, each with the number of rows it must touch. Either
 * every count is right and all steps happened, or one is wrong and none did. That is how a decision made
 * from an earlier read stays true ("still in this state", "no such name yet"), it lets any number of callers
 * share one fsync, and a write that lost a race can be run again without asking anyone.
 *
 * SQL is the part both databases understand: `?` for arguments, ON CONFLICT, RETURNING, text for JSON,
 * BIGINT for numbers and milliseconds, `BYTES` for bytes in table definitions.
 */
export interface Database {
  /** Rows as they are now; sees every write that was acknowledged before the call, whoever made it. */
  read<Row>(sql: string, args?: readonly Value[]): Promise<Row[]>;

  /** Several reads in one round trip, in order. Absent where a read costs none. */
  readAll?(queries: readonly Query[]): Promise<Record<string, Value>[][]>;

  /**
   * All of `steps` or none. Resolves when they are durable: a kill or a power cut after that loses nothing.
   * Rejects with `storage_full`, `storage_failed` or `overloaded`; of these only `storage_failed` leaves open
   * whether the steps happened.
   */
  write(steps: readonly Step[], options?: WriteOptions): Promise<Outcome>;

  /**
   * A number that changes with every commit, whoever made it; it is asked before a read. Absent where asking
   * costs as much as reading.
   */
  version?(): number;

  /** Every row of `tables` as of one moment, while others go on writing. */
  snapshot(tables: readonly string[]): AsyncIterable<{ table: string; row: Record<string, Value> }>;

  /** The platform stops: whatever still hangs after `ms` ends then, so that closing the rest is not held up. */
  hurry?(ms: number): void;

  close(): Promise<void>;
}

export type Value = string | number | null | Uint8Array;

export interface Query {
  sql: string;
  args?: readonly Value[];
}

export interface WriteOptions {
  /** It may take minutes, as migrations and restores do. Otherwise what takes longer than a request may is refused. */
  patient?: boolean;
}

export interface Step {
  sql: string;
  args?: readonly Value[];
  /** How many rows it must change or return; any number when left out. */
  rows?: number;
}

export type Outcome =
  /** What each step returned (RETURNING), in order; empty for steps that return nothing. */
  | { ok: true; returned: Record<string, Value>[][] }
  /** Nothing was written: this step touched `rows` rows, not the number it must. */
  | { ok: false; failed: number; rows: number };

/** The first row, or undefined. */
export async function readOne<Row>(
  database: Database,
  sql: string,
  args: readonly Value[] = [],
): Promise<Row | undefined> {
  const [row] = await database.read<Row>(sql, args);
  return row;
}

export function returnsRows(sql: string): boolean {
  return /\bRETURNING\b|^\s*SELECT\b/i.test(sql);
}
