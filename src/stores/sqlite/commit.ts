import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Outcome, returnsRows, type Step, type Value } from "../database.ts";
import type { CommitCount } from "./commit-count.ts";

/** Compiles each statement once per connection. All SQL is part of this program, so the number is bounded. */
export class Statements {
  readonly #db: DatabaseSync;
  readonly #cache = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  get(sql: string): StatementSync {
    let statement = this.#cache.get(sql);
    if (!statement) {
      statement = this.#db.prepare(sql);
      this.#cache.set(sql, statement);
    }
    return statement;
  }
}

export type Verdict = { outcome: Outcome } | { error: unknown };

/**
 * Runs several writes in one transaction with one fsync, each isolated by a savepoint: one with a wrong row count or an
 * SQL error is rolled back alone. Throws when the whole transaction failed (disk full, I/O error); then nothing was
 * written.
 */
export function commitGroup(
  db: DatabaseSync,
  statements: Statements,
  group: readonly (readonly Step[])[],
  counted?: CommitCount,
): Verdict[] {
  db.exec("BEGIN IMMEDIATE");
  try {
    const verdicts = group.map((steps) => runAlone(db, statements, steps));
    // Nothing to commit when every write was refused.
    const kept = verdicts.some((verdict) => "outcome" in verdict && verdict.outcome.ok);
    if (kept) counted?.add();
    db.exec(kept ? "COMMIT" : "ROLLBACK");
    if (kept) counted?.committed();
    return verdicts;
  } catch (thrown) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw thrown;
  }
}

function runAlone(db: DatabaseSync, statements: Statements, steps: readonly Step[]): Verdict {
  db.exec("SAVEPOINT one");
  const verdict = attempt(db, statements, steps);
  if (!("outcome" in verdict && verdict.outcome.ok)) db.exec("ROLLBACK TO one");
  db.exec("RELEASE one");
  return verdict;
}

function attempt(db: DatabaseSync, statements: Statements, steps: readonly Step[]): Verdict {
  const returned: Record<string, Value>[][] = [];
  for (const [index, step] of steps.entries()) {
    try {
      const { rows, values } = run(statements, step);
      if (step.rows !== undefined && rows !== step.rows) return { outcome: { ok: false, failed: index, rows } };
      returned.push(values);
    } catch (error) {
      // A full or broken disk ends the whole transaction.
      if (!db.isTransaction || isStorageError(error)) throw error;
      return { error };
    }
  }
  return { outcome: { ok: true, returned } };
}

function run(statements: Statements, step: Step): { rows: number; values: Record<string, Value>[] } {
  const statement = statements.get(step.sql);
  const args = step.args ?? [];
  if (returnsRows(step.sql)) {
    const values = statement.all(...args) as Record<string, Value>[];
    return { rows: values.length, values };
  }
  return { rows: Number(statement.run(...args).changes), values: [] };
}

/** SQLite's primary result codes for a full disk, and for a broken one. */
const FULL = 13;
const BROKEN = new Set([8, 10, 11, 14, 26]); // READONLY, IOERR, CORRUPT, CANTOPEN, NOTADB
const IOERR_SHMSIZE = 4874; // No space to grow the wal-index: full, not broken.

export function storageTrouble(thrown: unknown): "full" | "broken" | undefined {
  const code = (thrown as { errcode?: unknown } | null)?.errcode;
  if (typeof code !== "number") return undefined;
  if ((code & 0xff) === FULL || code === IOERR_SHMSIZE) return "full";
  return BROKEN.has(code & 0xff) ? "broken" : undefined;
}

const isStorageError = (thrown: unknown): boolean => storageTrouble(thrown) !== undefined;
