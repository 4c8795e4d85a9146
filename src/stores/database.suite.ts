import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Database } from "./database.ts";
import { migrate } from "./migrate.ts";

/** A database without tables. */
export type OpenDatabase = () => Promise<Database>;

const insert = (id: string, n: number): { sql: string; args: (string | number)[]; rows: number } => ({
  sql: "INSERT INTO things (id, n) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
  args: [id, n],
  rows: 1,
});

const broken = { sql: "INSERT INTO things (id, n) VALUES (?, ?)", args: ["x", null] };

async function things(database: Database): Promise<[string, number][]> {
  const rows = await database.read<{ id: string; n: number }>("SELECT id, n FROM things ORDER BY id");
  return rows.map((row) => [row.id, row.n]);
}

/** What every Database must do. */
export function databaseSuite(name: string, open: OpenDatabase, skip?: string): void {
  suite(`database: ${name}`, { skip }, () => {
    async function withThings(work: (database: Database) => Promise<void>): Promise<void> {
      const database = await open();
      try {
        await database.write([{ sql: "CREATE TABLE things (id TEXT PRIMARY KEY, n BIGINT NOT NULL, b BYTES)" }]);
        await work(database);
      } finally {
        await database.close();
      }
    }

    test("a write applies all of its steps, or none when a row count is wrong", () =>
      withThings(async (database) => {
        assert.deepEqual(await database.write([insert("a", 1), insert("b", 2)]), { ok: true, returned: [[], []] });
        const refused = await database.write([insert("c", 3), insert("a", 9)]);
        assert.deepEqual(refused, { ok: false, failed: 1, rows: 0 });
        assert.deepEqual(await things(database), [
          ["a", 1],
          ["b", 2],
        ]);
      }));

    test("a wrong row count is reported even when a later statement would fail", () =>
      withThings(async (database) => {
        await database.write([insert("a", 1)]);
        const refused = await database.write([insert("a", 9), broken, insert("b", 2)]);
        assert.deepEqual(refused, { ok: false, failed: 0, rows: 0 });
        assert.ok((await database.write([insert("b", 2)])).ok, "and the next write is fine");
      }));

    test("a failing statement rolls its write back and rejects", () =>
      withThings(async (database) => {
        await assert.rejects(database.write([insert("a", 1), broken]));
        assert.deepEqual(await things(database), []);
        assert.ok((await database.write([insert("a", 1)])).ok, "and the next write is fine");
      }));

    test("integers over 32 bits, bytes, any text and null are stored unchanged", () =>
      withThings(async (database) => {
        const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
        const text = "naïve – 日本 \u{1f600} ' \" \\ ?";
        await database.write([
          { sql: "INSERT INTO things (id, n, b) VALUES (?, ?, ?)", args: [text, 1_700_000_000_123, bytes] },
          { sql: "INSERT INTO things (id, n, b) VALUES (?, ?, ?)", args: ["z", -(2 ** 53 - 1), null] },
        ]);
        const rows = await database.read<{ id: string; n: number; b: Uint8Array | null }>(
          "SELECT * FROM things ORDER BY n DESC",
        );
        assert.equal(rows[0]?.id, text);
        assert.equal(rows[0]?.n, 1_700_000_000_123);
        assert.deepEqual(Buffer.from(rows[0]?.b ?? []), Buffer.from(bytes));
        assert.equal(rows[1]?.n, -(2 ** 53 - 1));
        assert.equal(rows[1]?.b, null);
      }));

    test("RETURNING returns its rows and counts them as affected", () =>
      withThings(async (database) => {
        const outcome = await database.write([
          insert("a", 1),
          { sql: "UPDATE things SET n = n + 1 WHERE id = ? RETURNING n", args: ["a"], rows: 1 },
        ]);
        assert.deepEqual(outcome.ok && Number(outcome.returned[1]?.[0]?.["n"]), 2);
      }));

    test("of concurrent inserts of the same key exactly one succeeds", () =>
      withThings(async (database) => {
        const outcomes = await Promise.all(Array.from({ length: 50 }, (_, i) => database.write([insert("prize", i)])));
        assert.equal(outcomes.filter((outcome) => outcome.ok).length, 1);
      }));

    test("concurrent increments are all applied, and each is visible once it is acknowledged", () =>
      withThings(async (database) => {
        await database.write([insert("counter", 0)]);
        const add = { sql: "UPDATE things SET n = n + 1 WHERE id = ?", args: ["counter"], rows: 1 };
        await Promise.all(
          Array.from({ length: 100 }, async (_, i) => {
            await database.write([add, insert(`seen-${i}`, i)]);
            const [row] = await database.read<{ n: number }>("SELECT n FROM things WHERE id = ?", [`seen-${i}`]);
            assert.equal(row?.n, i);
          }),
        );
        assert.deepEqual((await things(database))[0], ["counter", 100]);
      }));

    test("a failing write does not affect concurrent ones", () =>
      withThings(async (database) => {
        const results = await Promise.allSettled(
          Array.from({ length: 60 }, (_, i) =>
            database.write([i % 3 === 0 ? { sql: "INSERT INTO nowhere VALUES (1)" } : insert(`ok-${i}`, i)]),
          ),
        );
        assert.equal(results.filter((r) => r.status === "rejected").length, 20);
        assert.equal((await things(database)).length, 40);
      }));

    test("a snapshot shows one point in time during concurrent writes", () =>
      withThings(async (database) => {
        await database.write(Array.from({ length: 1200 }, (_, i) => insert(`${i}`.padStart(5, "0"), 0)));
        const seen: number[] = [];
        for await (const { row } of database.snapshot(["things"])) {
          if (seen.length === 0 && name !== "inline") await database.write([{ sql: "UPDATE things SET n = 1" }]);
          seen.push(Number(row["n"]));
        }
        assert.equal(seen.length, 1200);
        assert.ok(seen.every((n) => n === 0));
      }));

    test("migrations run once, in order, and a database of a newer version is refused by name", async () => {
      const database = await open();
      const first = { id: 1, name: "one", statements: ["CREATE TABLE one (id TEXT)"] };
      const second = { id: 2, name: "two", statements: ["CREATE TABLE two (id TEXT)", "INSERT INTO two VALUES ('x')"] };
      await migrate(database, [first]);
      await migrate(database, [first, second]);
      await migrate(database, [first, second]);
      assert.equal((await database.read("SELECT * FROM two")).length, 1);
      await assert.rejects(migrate(database, [first]), /newer version \(migration 2, this version knows 1\)/);
      await database.close();
    });

    test("a failed migration is rolled back completely", async () => {
      const database = await open();
      const bad = { id: 1, name: "bad", statements: ["CREATE TABLE one (id TEXT)", "CREATE TABLE one (id TEXT)"] };
      await assert.rejects(migrate(database, [bad]));
      await migrate(database, [{ ...bad, statements: ["CREATE TABLE one (id TEXT)"] }]);
      assert.deepEqual(await database.read("SELECT * FROM one"), []);
      await database.close();
    });
  });
}
