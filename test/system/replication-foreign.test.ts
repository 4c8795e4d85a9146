/**
 * Foreign programs at a primary for a while: Python's sqlite3 writes, the sqlite3 shell dumps one database into another and
 * restores one from a file, and both nodes are killed in between. At the end both dump the same, byte by byte.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { suite, test } from "node:test";
import { random, runs, seed } from "../support.ts";
import { appsMissing, makeNotes, nodePair, type Pair, PythonApp, sqlite } from "./replication-apps.ts";
import { samePositionOn } from "./replication-support.ts";

const NAMES = ["db", "loaded", "restored"];

/** Statements of an application, of every kind that changes many pages or few. */
const STATEMENTS = [
  "INSERT INTO notes (text) VALUES (hex(randomblob(200)))",
  "UPDATE notes SET text = text || 'x' WHERE n % 7 = 1",
  "DELETE FROM notes WHERE n IN (SELECT n FROM notes ORDER BY n LIMIT 3)",
  "INSERT INTO notes (text) SELECT text FROM notes LIMIT 50",
  "CREATE INDEX IF NOT EXISTS by_text ON notes (text)",
  "DROP INDEX IF EXISTS by_text",
  "VACUUM",
];

function oneOf<T>(all: readonly T[], next: () => number): T {
  return all[Math.floor(next() * all.length)] ?? assert.fail();
}

/** `.dump` of one database is read by another shell, in one transaction. */
function load(from: string, to: string): void {
  const script = `.timeout 20000\nDROP TABLE IF EXISTS notes;\n${sqlite(from, ".dump")}\n`;
  const { status, stderr } = spawnSync("sqlite3", ["-bail", to], { input: script, encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
}

/** From one database to the next, by the shell alone. */
function loadAndRestore(path: (name: string) => string, saved: string): void {
  load(path("db"), path("loaded"));
  sqlite(path("loaded"), `.backup ${saved}`);
  // Over a database in use, page by page, in one transaction.
  sqlite(path("restored"), `.restore ${saved}`);
  assert.equal(sqlite(path("restored"), ".dump"), sqlite(path("loaded"), ".dump"));
}

async function assertSame(pair: Pair): Promise<void> {
  for (const name of NAMES) {
    await samePositionOn(pair.ports.primary, pair.ports.replica, name);
    const [here, there] = (["primary", "replica"] as const).map((which) => pair.path(which, name));
    assert.equal(sqlite(there ?? "", ".dump"), sqlite(here ?? "", ".dump"), name);
    for (const path of [here, there]) assert.equal(sqlite(path ?? "", "PRAGMA integrity_check"), "ok");
  }
}

suite("foreign programs at a node", { timeout: 1_800_000, skip: appsMissing() }, () => {
  test("writes, dumps and restores during kills leave both nodes byte for byte equal", async (t) => {
    const next = random(seed(t));
    const pair = await nodePair(t);
    const nodes = { primary: await pair.start("primary"), replica: await pair.start("replica") };
    const path = (name: string): string => pair.path("primary", name);
    for (const name of NAMES) makeNotes(path(name), 50);
    const saved = join(pair.stage.dir(), "saved");
    let statements = 0;
    const rounds = runs(2, 10, 100);
    for (let round = 0; round < rounds; round++) {
      const app = new PythonApp(pair.stage, path("db"));
      for (let n = 0; n < 40; n++, statements++) {
        assert.match(await app.run(oneOf(STATEMENTS, next)), /^ok/);
        const which = oneOf(["primary", "replica"] as const, next);
        if (next() > 0.05) continue;
        await nodes[which].end("SIGKILL");
        nodes[which] = await pair.start(which);
      }
      loadAndRestore(path, saved);
      await app.end();
      await assertSame(pair);
    }
    t.diagnostic(`${rounds} rounds, ${statements} statements of Python`);
  });
});
