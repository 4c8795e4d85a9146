/**
 * What the store's proofs write, and how they check it. Each writer owns a row and counts it up; every step
 * is one write of the row and of an event with the new count. So whatever happened, the row must be as its
 * newest event says, the events must have no gap, and no acknowledged count may be missing.
 */
import type { DatabaseSync } from "node:sqlite";
import type { Database, Step } from "#stores/database.ts";

/** Some weight, so that the log grows past its checkpoint and pages split. */
const WORDS = "something worth keeping ".repeat(8);

export const SCHEMA: readonly Step[] = [
  { sql: "CREATE TABLE IF NOT EXISTS counters (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)" },
  {
    sql: `CREATE TABLE IF NOT EXISTS events (
            counter BIGINT NOT NULL, n BIGINT NOT NULL, words TEXT NOT NULL, PRIMARY KEY (counter, n))`,
  },
];

export const addCounter = (id: number): Step => ({
  sql: "INSERT INTO counters (id, n) VALUES (?, 0) ON CONFLICT DO NOTHING",
  args: [id],
});

export const countUp = (id: number, to: number): Step[] => [
  { sql: "UPDATE counters SET n = ? WHERE id = ? AND n = ?", args: [to, id, to - 1], rows: 1 },
  { sql: "INSERT INTO events (counter, n, words) VALUES (?, ?, ?)", args: [id, to, WORDS], rows: 1 },
];

/**
 * Counts `id` up until the store refuses, telling every number that is durable; with `early` before it is,
 * as a mistaken store would.
 */
export async function keepCounting(
  database: Database,
  id: number,
  told: (n: number) => void,
  early = false,
): Promise<void> {
  const [row] = await database.read<{ n: number }>("SELECT n FROM counters WHERE id = ?", [id]);
  for (let n = (row?.n ?? 0) + 1; ; n++) {
    if (early) told(n);
    const outcome = await database.write(countUp(id, n));
    if (!outcome.ok) throw new Error(`counter ${id} was not ${n - 1}`);
    if (!early) told(n);
  }
}

/** The highest number that was acknowledged, per counter. */
export type Acks = Map<number, number>;

export function noteAck(acks: Acks, id: number, n: number): void {
  acks.set(id, Math.max(acks.get(id) ?? 0, n));
}

export interface Findings {
  /** Acknowledged steps that are not there. */
  lost: number;
  /** What cannot be, in words: a damaged file, a row that its events contradict. */
  wrong: string[];
}

/** Checks a database without writers. */
export function examine(db: DatabaseSync, acks: Acks): Findings {
  const wrong: string[] = [];
  const [verdict] = db.prepare("PRAGMA integrity_check").all() as { integrity_check: string }[];
  if (verdict?.integrity_check !== "ok") wrong.push(`integrity: ${verdict?.integrity_check}`);
  const rows = db
    .prepare(
      `SELECT id, counters.n AS n, count(events.n) AS events, coalesce(max(events.n), 0) AS newest
       FROM counters LEFT JOIN events ON events.counter = id GROUP BY id`,
    )
    .all() as { id: number; n: number; events: number; newest: number }[];
  for (const { id, n, events, newest } of rows) {
    if (n !== newest) wrong.push(`counter ${id} is ${n}, its newest event says ${newest}`);
    if (events !== newest) wrong.push(`counter ${id} has ${events} events up to ${newest}`);
  }
  const kept = new Map(rows.map((row) => [row.id, row.n]));
  let lost = 0;
  for (const [id, n] of acks) lost += Math.max(0, n - (kept.get(id) ?? 0));
  return { lost, wrong };
}

/** What a file holds for a number: long enough to be torn, and to show it. */
export const contentOf = (n: number): string => `${`${n} `.repeat(2000)}end\n`;

/** The number a file holds, or undefined when it is not whole. */
export function numberOf(content: string): number | undefined {
  const n = Number.parseInt(content, 10);
  return content === contentOf(n) ? n : undefined;
}
