/**
 * This process's SQLite connections to one database. They exist for their locks: the write lock keeps
 * applications out (replica, fencing, the end of a checkpoint), a read transaction keeps the log from being
 * started over before it was captured.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";

const BUSY = 5;
/** Timeout for starting a read transaction: only WAL recovery blocks it. */
const READ_TIMEOUT_MS = 100;

export function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && Number(error.errcode) % 256 === BUSY;
}

class Reader {
  readonly #db: DatabaseSync;
  readonly #look: StatementSync;
  #open = false;

  constructor(path: string) {
    this.#db = connect(path);
    this.#db.exec(`PRAGMA busy_timeout = ${READ_TIMEOUT_MS}`);
    this.#look = this.#db.prepare("SELECT count(*) FROM sqlite_schema");
  }

  begin(): void {
    if (this.#open) return;
    this.#db.exec("BEGIN");
    this.#open = true;
    this.#look.get();
  }

  end(): void {
    if (this.#open) this.#db.exec("COMMIT");
    this.#open = false;
  }

  close(): void {
    this.#db.close();
  }
}

function connect(path: string): DatabaseSync {
  // Never waits: this thread serves all other databases.
  const db = new DatabaseSync(path, { timeout: 0 });
  // This process decides about checkpoints; NORMAL makes them sync WAL and database.
  db.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL");
  return db;
}

export interface CheckpointResult {
  /** Whether every frame of the WAL is in the database. */
  complete: boolean;
  busy: boolean;
}

export class Connections {
  /** Open connections, last one first. */
  readonly #open: { close(): void }[] = [];
  readonly #lock: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #checkpointer: DatabaseSync;
  #reader: Reader;
  #spare: Reader;
  #locked = false;
  readonly page_size: number;

  /** Opens the database in WAL mode. Throws when it is busy, or not a database. */
  constructor(path: string) {
    try {
      this.#lock = this.#opened(connect(path));
      const mode = this.#lock.prepare("PRAGMA journal_mode = WAL").get();
      if (mode?.["journal_mode"] !== "wal") throw new Error(`${path} cannot be put into WAL mode`);
      this.page_size = Number(this.#lock.prepare("PRAGMA page_size").get()?.["page_size"]);
      this.#begin = this.#lock.prepare("BEGIN IMMEDIATE");
      this.#checkpointer = this.#opened(connect(path));
      this.#checkpointer.prepare("SELECT count(*) FROM sqlite_schema").get();
      this.#reader = this.#opened(new Reader(path));
      this.#spare = this.#opened(new Reader(path));
    } catch (error) {
      // Otherwise they would stay open, with locks, until garbage collection.
      for (const connection of this.#open) connection.close();
      throw error;
    }
  }

  #opened<T extends { close(): void }>(connection: T): T {
    this.#open.unshift(connection);
    return connection;
  }

  get locked(): boolean {
    return this.#locked;
  }

  /** Takes the write lock without waiting. Returns false when an application has it. */
  tryLock(): boolean {
    if (this.#locked) return true;
    // Called very often; capturing the stack would take most of the time.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      this.#begin.run();
    } catch (error) {
      if (isBusy(error)) return false;
      throw error;
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
    this.#locked = true;
    return true;
  }

  unlock(): void {
    if (this.#locked) this.#lock.exec("ROLLBACK");
    this.#locked = false;
  }

  /** Starts the read transaction: from now on the WAL can restart at most once. */
  watch(): void {
    this.#reader.begin();
  }

  /**
   * Moves the read transaction to now without a gap. `before_end` runs while both exist: what the old one protected
   * must be captured there.
   */
  moveWatch(before_end: () => void): void {
    this.#spare.begin();
    before_end();
    this.#reader.end();
    [this.#reader, this.#spare] = [this.#spare, this.#reader];
  }

  unwatch(): void {
    this.#reader.end();
  }

  checkpoint(mode: "PASSIVE" | "TRUNCATE", timeout_ms = 0): CheckpointResult {
    this.#checkpointer.exec(`PRAGMA busy_timeout = ${timeout_ms}`);
    try {
      const row = this.#checkpointer.prepare(`PRAGMA wal_checkpoint(${mode})`).get();
      return { complete: row?.["log"] === row?.["checkpointed"], busy: row?.["busy"] !== 0 };
    } catch (error) {
      if (isBusy(error)) return { complete: false, busy: true };
      throw error;
    }
  }

  close(): void {
    this.unlock();
    this.unwatch();
    for (const connection of this.#open) connection.close();
  }
}
