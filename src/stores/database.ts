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
   * Present where writes overlap, so that what one has numbered can be seen before what another numbered lower. As
   * SQL: the number of the write that runs it, and the lowest number of a write under way; all lower ones are over.
   */
  readonly transactions?: {
    current: string;
    settled: string;
    /** Ends writes whose process says nothing more. */
    endStuck(): Promise<void>;
  };

  /** Every row of `tables` as of one moment, while others go on writing. */
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
