/** Writes and reads of one table, whose rows are about as large as a machine's. */
import assert from "node:assert/strict";
import { openPostgres } from "#stores/postgres/database.ts";
import type { Report } from "../report.ts";
import { costOf, onServer, type Postgres } from "./server.ts";

const ROWS = 20_000;
const AT_ONCE = 500;
const CALLERS = [1, 10];
const WRITES = 4000;
const READS = 4000;
const PAGE = 100;
const CONFIG = JSON.stringify({ image: "web:1", env: { TEXT: "x".repeat(900) } });

type Database = Awaited<ReturnType<typeof openPostgres>>;

export async function writes(report: Report): Promise<void> {
  report.section("writes: one transaction that changes a row of 1 KiB by its id and adds an event, both guarded");
  await onTable(async (database, postgres) => {
    for (const callers of CALLERS) {
      const cost = await costOf(postgres, WRITES, () => byCallers(callers, WRITES, (index) => write(database, index)));
      const by = callers === 1 ? "1 caller" : `${callers} callers`;
      report.add({ what: `processor time of PostgreSQL, ${by}`, value: cost.cpu_ms, unit: "ms" });
      report.add({ what: `log, ${by}`, value: cost.wal_bytes / 1024, unit: "KiB" });
      report.add({ what: `as the box was, ${by}`, value: cost.per_second, unit: "/s" });
    }
    const [events] = await database.read<{ count: number }>("SELECT count(*) AS count FROM events");
    assert.equal(Number(events?.count), WRITES * CALLERS.length, "every write happened");
  });
}

export async function reads(report: Report): Promise<void> {
  report.section(`reads: of a table of ${ROWS} rows of 1 KiB`);
  await onTable(async (database, postgres) => {
    const kinds = [
      ["one row by its id", (index: number) => one(database, index)],
      [`a page of ${PAGE} by key`, (index: number) => page(database, index)],
    ] as const;
    for (const [what, read] of kinds) {
      const cost = await costOf(postgres, READS, () => byCallers(CALLERS.at(-1) ?? 1, READS, read));
      report.add({ what: `processor time of PostgreSQL, ${what}`, value: cost.cpu_ms, unit: "ms" });
      report.add({ what: `as the box was, ${what}`, value: cost.per_second, unit: "/s" });
    }
  });
}

async function onTable(work: (database: Database, postgres: Postgres) => Promise<void>): Promise<void> {
  await onServer(async (postgres) => {
    const database = await openPostgres(postgres.url);
    await database.write([
      { sql: "CREATE TABLE things (id TEXT PRIMARY KEY, changed BIGINT NOT NULL, config TEXT NOT NULL)" },
      { sql: "CREATE INDEX things_changed ON things (changed, id)" },
      { sql: "CREATE TABLE events (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, thing TEXT NOT NULL)" },
    ]);
    for (let from = 0; from < ROWS; from += AT_ONCE)
      await database.write(Array.from({ length: AT_ONCE }, (_, i) => add(from + i)));
    await database.write([{ sql: "ANALYZE things" }]);
    await work(database, postgres);
    await database.close();
  });
}

/** Spread, so that two callers hardly ever want the same row. */
const idOf = (index: number): string => `t${(index * 7919) % ROWS}`;

const add = (index: number) => ({ sql: "INSERT INTO things VALUES (?, ?, ?)", args: [`t${index}`, index, CONFIG] });

async function write(database: Database, index: number): Promise<void> {
  const id = idOf(index);
  const { ok } = await database.write([
    { sql: "UPDATE things SET changed = changed + ?, config = ? WHERE id = ?", args: [ROWS, CONFIG, id], rows: 1 },
    { sql: "INSERT INTO events (thing) VALUES (?)", args: [id], rows: 1 },
  ]);
  assert.ok(ok);
}

async function one(database: Database, index: number): Promise<void> {
  assert.equal((await database.read("SELECT * FROM things WHERE id = ?", [idOf(index)])).length, 1);
}

async function page(database: Database, index: number): Promise<void> {
  const after = (index * 7919) % (ROWS - PAGE - 1);
  const sql = "SELECT * FROM things WHERE (changed, id) > (?, ?) ORDER BY changed, id LIMIT ?";
  assert.equal((await database.read(sql, [after, "", PAGE])).length, PAGE);
}

async function byCallers(callers: number, count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
