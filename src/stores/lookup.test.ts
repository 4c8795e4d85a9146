import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LIMITS } from "#core/limits.ts";
import { tempDir } from "../../test/support.ts";
import { readOne } from "./database.ts";
import { lookup } from "./lookup.ts";
import { openSqlite } from "./sqlite/database.ts";
import { inlineSqlite } from "./sqlite/inline.ts";

async function aTable(t: TestContext) {
  const file = join(tempDir(), "hangar.db");
  const database = await openSqlite(file);
  t.after(() => database.close());
  await database.write([{ sql: "CREATE TABLE things (key TEXT PRIMARY KEY, value BIGINT)" }]);
  await database.write([{ sql: "INSERT INTO things VALUES ('a', 1), ('b', 1)" }]);
  const load = t.mock.fn((key: string) =>
    readOne<{ value: number }>(database, "SELECT value FROM things WHERE key = ?", [key]),
  );
  const find = lookup(database, "thing", load);
  return { file, database, load, value: async (key: string) => (await find(key))?.value };
}

suite("lookup cache", () => {
  test("a value is read once while nothing is written", async (t) => {
    const { load, value } = await aTable(t);
    for (let turn = 0; turn < 3; turn++) {
      assert.equal(await value("a"), 1);
      await nextTurn();
    }
    assert.equal(load.mock.callCount(), 1);
  });

  test("a write is visible to its caller in the same turn of the event loop", async (t) => {
    const { database, value } = await aTable(t);
    for (let wanted = 2; wanted < 50; wanted++) {
      // Looked up repeatedly meanwhile, so that the version from before the commit is cached when the write returns.
      let answered = false;
      const meanwhile = (async () => {
        while (!answered) {
          await value("a");
          await nextTurn();
        }
      })();
      await database.write([{ sql: "UPDATE things SET value = ? WHERE key = 'a'", args: [wanted] }]);
      assert.equal(await value("a"), wanted);
      answered = true;
      await meanwhile;
    }
  });

  test("a commit of another process is visible in the next turn of the event loop", async (t) => {
    const { file, value } = await aTable(t);
    using other = new DatabaseSync(file);
    for (let wanted = 2; wanted < 20; wanted++) {
      await value("a");
      other.prepare("UPDATE things SET value = ?").run(wanted);
      await nextTurn();
      assert.equal(await value("a"), wanted);
    }
  });

  test("missing rows are read again, and deleted rows are not cached", async (t) => {
    const { database, value } = await aTable(t);
    assert.equal(await value("c"), undefined);
    await database.write([{ sql: "INSERT INTO things VALUES ('c', 3)" }]);
    assert.equal(await value("c"), 3);
    await database.write([{ sql: "DELETE FROM things WHERE key = 'c'" }]);
    assert.equal(await value("c"), undefined);
  });

  test("the cache holds at most `lookups` entries", async (t) => {
    const { database, load, value } = await aTable(t);
    const sql = `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${LIMITS.lookups})
                 INSERT INTO things SELECT 'k' || i, i FROM n`;
    await database.write([{ sql }]);
    for (let i = 0; i < LIMITS.lookups; i++) assert.equal(await value(`k${i}`), i);
    await value("k0");
    assert.equal(load.mock.callCount(), LIMITS.lookups + 1, "all were forgotten when it was full");
  });

  test("a database without a cheap version number is read every time", async (t) => {
    const load = t.mock.fn(async (key: string) => key);
    const find = lookup(inlineSqlite(), "thing", load);
    assert.equal(await find("a"), "a");
    assert.equal(await find("a"), "a");
    assert.equal(load.mock.callCount(), 2);
  });
});
