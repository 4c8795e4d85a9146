/** Applications that copy SQLite's log back themselves: the node steps aside for them, misses nothing, and the log stays short. */
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { suite, test } from "node:test";
import { within } from "../support.ts";
import { addNote, appsMissing, makeNotes, nodePair, notes, PythonApp } from "./replication-apps.ts";

suite("an application's own checkpoints", { timeout: 300_000, skip: appsMissing() }, () => {
  test("FULL, RESTART and TRUNCATE succeed, writers go on, and every transaction is captured", async (t) => {
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
});
