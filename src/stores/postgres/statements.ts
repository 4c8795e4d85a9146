import { createHash } from "node:crypto";
import { returnsRows, type Step, type Value } from "../database.ts";

/** A statement in PostgreSQL's syntax. */
export interface Statement {
  /** Derived from the text, so that one name never means two texts, even behind a pooler that mixes sessions. */
  name: string;
  text: string;
  values: readonly (string | Buffer | null)[];
}

interface Prepared {
  name: string;
  text: string;
}

/** All SQL is part of this program, so the number is bounded. */
const prepared = new Map<string, Prepared>();

function prepare(sql: string, key: string, textOf: (sql: string) => string): Prepared {
  let found = prepared.get(key);
  if (!found) {
    let argument = 0;
    const text = textOf(sql.replaceAll("?", () => `$${++argument}`).replaceAll(/\bBYTES\b/g, "BYTEA"));
    found = { name: `h${createHash("sha256").update(text).digest("hex").slice(0, 24)}`, text };
    prepared.set(key, found);
  }
  return found;
}

const valuesOf = (args: readonly Value[]): Statement["values"] =>
  args.map((value) => {
    if (value === null || typeof value === "string") return value;
    return typeof value === "number" ? String(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  });

export function statement(sql: string, args: readonly Value[] = []): Statement {
  return { ...prepare(sql, sql, (text) => text), values: valuesOf(args) };
}

/** Unprepared, for shared sessions and one-off statements. */
export const unnamed = (one: Statement): Statement => ({ ...one, name: "" });

/** Marks a wrong row count in the error that aborts the transaction. */
const WRONG_ROWS = "hangar guard: rows ";
/** The column that holds the guard beside the returned ones. */
export const GUARD = "hangar_guard";

/**
 * A step whose row count the server checks: a wrong one is an error, which rolls back the write. So locks are held only
 * while the server works.
 */
export function guardedStatement({ sql, args = [], rows }: Step): Statement {
  if (rows === undefined) return statement(sql, args);
  return { ...prepare(sql, `${rows} ${sql}`, (text) => guard(text, rows)), values: valuesOf(args) };
}

function guard(text: string, rows: number): string {
  const returns = returnsRows(text);
  return `WITH step AS (${text}${returns ? "" : " RETURNING 1"}),
    guard AS (SELECT CASE WHEN count(*) = ${rows} THEN 1 ELSE ('${WRONG_ROWS}' || count(*))::int END AS ${GUARD} FROM step)
    SELECT ${returns ? "step.*, " : ""}guard.${GUARD} FROM guard${returns ? " LEFT JOIN step ON true" : ""}`;
}

/** The row count of a guarded step from its error. Undefined for other errors. */
export function wrongRows(error: { code?: unknown; message?: unknown }): number | undefined {
  if (error.code !== "22P02" || typeof error.message !== "string") return undefined;
  const [, rows] = new RegExp(`${WRONG_ROWS}(\\d+)`).exec(error.message) ?? [];
  return rows === undefined ? undefined : Number(rows);
}

/** The rows of a guarded step without the guard column. */
export function unguarded(step: Step, rows: Record<string, Value>[]): Record<string, Value>[] {
  if (step.rows === undefined) return rows;
  if (step.rows === 0 || !returnsRows(step.sql)) return [];
  for (const row of rows) delete row[GUARD];
  return rows;
}
