/** Applications that copy SQLite's log back themselves: the node steps aside for them, misses nothing, and the log stays short. */
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { suite, test } from "node:test";
import { REPLICATION_LIMITS } from "../../src/replication/limits.ts";
import { runs, until, within } from "../support.ts";
import { Child } from "./child.ts";
import { addNote, appsMissing, makeNotes, nodePair, notes, PythonApp } from "./replication-apps.ts";

/** Writes as fast as it can, ten pages each time, and says how long SQLite's log became. */
const FAST = `
import os, sqlite3, sys
path, count = sys.argv[1], int(sys.argv[2])
connection = sqlite3.connect(path, isolation_level=None, timeout=60)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA synchronous = NORMAL")
connection.execute("CREATE TABLE notes (n INTEGER PRIMARY KEY, text)")
connection.execute("BEGIN")
connection.executemany("INSERT INTO notes VALUES (?, hex(randomblob(1700)))", [(n,) for n in range(1, 1001)])
connection.execute("COMMIT")
longest = 0
for i in range(count):
    connection.execute("BEGIN IMMEDIATE")
    for j in range(10):
        connection.execute("UPDATE notes SET text = hex(randomblob(1700)) WHERE n = ?", (1 + (i * 10 + j) % 1000,))
    connection.execute("COMMIT")
    if i % 50 == 0:
        longest = max(longest, os.stat(path + "-wal").st_size)
print(longest)
`;

suite("checkpoints by the application", { timeout: 300_000, skip: appsMissing() }, () => {
  test("FULL, RESTART and TRUNCATE succeed, writers go on, and every transaction is captured (R13)", async (t) => {
    const pair = await nodePair(t);
    await pair.start("primary");
    await pair.start("replica");
    const path = pair.path("primary", "db");
    makeNotes(path, 10);
    await pair.caughtUp("db", 10);
    const txid = async (): Promise<number> =>
      Number(`0x${(await pair.info("primary"))?.databases["db"]?.slice(0, 16)}`);
    const before = await txid();
    const app = new PythonApp(pair.stage, path);
    let slowest_ms = 0;
    let rows = 10;
    for (let round = 0; round < 3; round++) {
      for (const mode of ["FULL", "RESTART", "TRUNCATE"]) {
        assert.match(await app.run("INSERT INTO notes (text) VALUES ('more')"), /^ok/);
        const began = performance.now();
        const said = await app.run(`PRAGMA wal_checkpoint(${mode})`);
        slowest_ms = Math.max(slowest_ms, performance.now() - began);
        const [busy, log, copied] = said.match(/-?\d+/g)?.map(Number) ?? [];
        assert.deepEqual([busy, copied], [0, log], `${mode}: ${said}`);
        if (mode === "TRUNCATE") assert.equal(statSync(`${path}-wal`).size, 0);
        addNote(path);
        rows += 2;
      }
    }
    await pair.caughtUp("db", rows);
    assert.equal(await txid(), before + rows - 10, "each transaction is one");
    assert.ok(notes(pair.path("replica", "db"))?.whole);
    assert.ok(slowest_ms < within(1000), `a checkpoint took ${slowest_ms} ms`);
    t.diagnostic(`the slowest checkpoint took ${Math.round(slowest_ms)} ms`);
  });

  test("a writer at full speed is replicated completely, and the WAL stays short (R13)", async (t) => {
    const pair = await nodePair(t);
    await pair.start("primary");
    await pair.start("replica");
    const path = pair.path("primary", "db");
    const writer = new Child("python3", ["-c", FAST, path, String(runs(3000, 20_000))]);
    pair.stage.later(() => writer.kill());
    const { code } = await writer.ended;
    assert.equal(code, 0, writer.complaints);
    await pair.caughtUp("db", 1000);
    const bound = REPLICATION_LIMITS.checkpoint_frames * 2 * 4200;
    await until("the log is short", () => statSync(`${path}-wal`).size <= bound);
    const longest = Number(writer.lines[0]);
    // On a box where the node has to wait for its turn a writer is ahead of it meanwhile.
    assert.ok(longest < bound * (process.env["HANGAR_PROVE"] ? 2 : 8), `it was ${longest} bytes long`);
    assert.ok(notes(pair.path("replica", "db"))?.whole);
    t.diagnostic(
      `the log was ${Math.round(longest / 1e6)} MB long at most, and was left with ${statSync(`${path}-wal`).size}`,
    );
  });
});
