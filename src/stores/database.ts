/**
 * A SQL database behind two methods. SQLite and PostgreSQL implement it; both pass `database.suite.ts`.
 *
 * A *write* is a list of steps, not an interactive transaction: each step has the number of rows it must change. Either
 * every count matches and all steps are applied, or one does not and none is. This guards decisions made from an
 * earlier read ("still in this state", "no such name yet"), lets any number of callers share one fsync, and lets a
 * write that lost a race be repeated without its caller.
 *
 * SQL is the common subset of both databases: `?` for arguments, ON CONFLICT, RETURNING, text for JSON,
 * BIGINT for numbers and milliseconds, `BYTES` for bytes in table definitions.
 */
export interface Database {
  /** Reads current rows, including every write acknowledged before the call, by anyone. */
  read<Row>(sql: string, args?: readonly Value[]): Promise<Row[]>;

  /** Several reads in one round trip, in order. Absent where a read costs none. */
  readAll?(queries: readonly Query[]): Promise<Record<string, Value>[][]>;

  /**
   * Applies all `steps` or none. Resolves when they are durable. Rejects with `storage_full`, `storage_failed` or
   * `overloaded`; only after `storage_failed` the outcome is unknown.
   */
  write(steps: readonly Step[], options?: WriteOptions): Promise<Outcome>;

  /** Changes with every commit, by anyone; read before a read. Absent where it costs as much as reading. */
  version?(): number;

  /**
   * Present where writes are concurrent, so that a higher transaction number may be visible before a lower one. SQL
   * expressions: the number of the current write, and the lowest number in progress; all lower ones have ended.
   */
  readonly transactions?: {
    current: string;
    settled: string;
    /** Terminates writes of stalled processes. */
    endStuck(): Promise<void>;
  };

  /** Every row of `tables` as of one moment, during concurrent writes. */
  snapshot(tables: readonly string[]): AsyncIterable<{ table: string; row: Record<string, Value> }>;

  /** At shutdown: aborts what still hangs after `ms`. */
  hurry?(ms: number): void;

  close(): Promise<void>;
}

export type Value = string | number | null | Uint8Array;

export interface Query {
  sql: string;
  args?: readonly Value[];
}

export interface WriteOptions {
  /** May take minutes, such as migrations and restores. Otherwise it is limited to a request's time. */
  patient?: boolean;
}

export interface Step {
  sql: string;
  args?: readonly Value[];
  /** Required number of changed or returned rows; any when absent. */
  rows?: number;
}

export type Outcome =
  /** Rows returned by each step (RETURNING), in order; empty otherwise. */
  | { ok: true; returned: Record<string, Value>[][] }
  /** Nothing was written: this step affected `rows` rows instead of the required number. */
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
