import { createHash } from "node:crypto";
import { returnsRows, type Step, type Value } from "../database.ts";

/** A statement as PostgreSQL reads it. */
export interface Statement {
  /** Made from the text, so that one name never stands for two texts, also behind a pooler that mixes up sessions. */
  name: string;
  text: string;
  values: readonly (string | Buffer | null)[];
}

interface Prepared {
  name: string;
  text: string;
}

/** All SQL is written in this program, so the number is bounded. */
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

/** Not prepared: for sessions that others may share, and for what is said once. */
export const unnamed = (one: Statement): Statement => ({ ...one, name: "" });

/** What a wrong number of rows is told by: the server quotes it in the error that ends the transaction. */
const WRONG_ROWS = "hangar guard: rows ";
/** The column that holds the guard beside what the step returns. */
export const GUARD = "hangar_guard";

/**
 * A step whose number of rows the server itself compares: a wrong one is an error there, which undoes the write. So
 * a write needs nobody to look at it half done, and holds its locks for as long as the server works and no longer.
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

/** The number of rows a guarded step touched, from the error it ended with. Undefined for any other error. */
export function wrongRows(error: { code?: unknown; message?: unknown }): number | undefined {
  if (error.code !== "22P02" || typeof error.message !== "string") return undefined;
  const [, rows] = new RegExp(`${WRONG_ROWS}(\\d+)`).exec(error.message) ?? [];
  return rows === undefined ? undefined : Number(rows);
}

/** The rows of a guarded step without its guard. */
export function unguarded(step: Step, rows: Record<string, Value>[]): Record<string, Value>[] {
  if (step.rows === undefined) return rows;
  if (step.rows === 0 || !returnsRows(step.sql)) return [];
  for (const row of rows) delete row[GUARD];
  return rows;
}
