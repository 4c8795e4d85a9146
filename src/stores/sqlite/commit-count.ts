/**
 * Counts committed transactions, in the database and in a file beside it. SQLite silently drops the end of a log with
 * a wrong checksum, as after a power cut, so an acknowledged write could be lost unnoticed. The file is written after
 * the commit is durable, so its count is never higher than what the disk has, and it need not be synced itself.
 */
import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import type { DatabaseSync, StatementSync } from "node:sqlite";

const TABLE = "commit_count";
/** The digits of a safe integer: every number overwrites the previous one. */
const DIGITS = 16;

export const countFile = (database: string): string => `${database}-commits`;

/** Undefined before the first write. */
export function countOutside(database: string): number | undefined {
  const file = countFile(database);
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, "utf8").trim();
  return /^\d{1,16}$/.test(text) ? Number(text) : undefined;
}

export function countInside(db: DatabaseSync): number {
  const there = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(TABLE);
  return there ? Number(db.prepare(`SELECT n FROM ${TABLE}`).get()?.["n"] ?? 0) : 0;
}

export class CommitCount {
  readonly #add: StatementSync;
  readonly #fd: number;
  #last: number;

  constructor(db: DatabaseSync, database: string) {
    db.exec(`CREATE TABLE IF NOT EXISTS ${TABLE} (n INTEGER NOT NULL)`);
    db.exec(`INSERT INTO ${TABLE} (n) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM ${TABLE})`);
    this.#add = db.prepare(`UPDATE ${TABLE} SET n = n + 1 RETURNING n`);
    this.#last = countInside(db);
    // Created, and opened for writing at its beginning: the content stays until the next commit.
    closeSync(openSync(countFile(database), "a", 0o600));
    this.#fd = openSync(countFile(database), "r+");
  }

  /** Called inside the transaction. */
  add(): void {
    this.#last = Number(this.#add.get()?.["n"]);
  }

  /** Called after it. If this fails the number is too low, which only weakens the check. */
  committed(): void {
    try {
      writeSync(this.#fd, `${String(this.#last).padStart(DIGITS, "0")}\n`, 0);
    } catch {
      // The disk is full or broken: the database itself reports it.
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
