/** Databases that applications hold locked: the others are captured, `/info` answers, and the lease is renewed meanwhile. */
import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { until, within } from "../support.ts";
import { addNote, appsMissing, makeNotes, notes, PythonApp, sqlite } from "./replication-apps.ts";
import { freePort, info, Stage } from "./replication-support.ts";

suite("locked databases", { timeout: 300_000, skip: appsMissing() }, () => {
  test("three locked databases delay no other one, nor the renewal of the lease (R9)", async (t) => {
    const stage = new Stage(t);
    const [here, there] = [stage.dir(), stage.dir()];
    const [port, follower] = [await freePort(), await freePort()];
    const lease = `sqlite:${join(stage.dir(), "lease.db")}`;
    const primary = stage.node(here, port, "--lease", lease);
    await until("it is primary", async () => (await info(port))?.isPrimary);
    stage.node(there, follower, "--lease", lease, "--no-candidate");
    makeNotes(join(here, "free"), 1);
    await until("the replica follows", () => notes(join(there, "free"))?.rows === 1);
    const locked = ["one", "two", "three"];
    const apps: PythonApp[] = [];
    for (const name of locked) {
      // In the mode that SQLite has of itself, in which a lock keeps readers out, too. Locked before the node sees it.
      const made = join(stage.dir(), name);
      sqlite(made, "CREATE TABLE notes (n INTEGER PRIMARY KEY, text)");
      const app = new PythonApp(stage, made);
      apps.push(app);
      assert.match(await app.run("BEGIN EXCLUSIVE"), /^ok/);
      renameSync(made, join(here, name));
    }
    await until("all three are known to be locked", async () => {
      const states = (await info(port))?.states ?? {};
      return locked.every((name) => states[name]?.state === "busy");
    });
    const { term } = (await info(port)) ?? {};
    let slowest_ms = 0;
    for (let rows = 2; rows <= 11; rows++) {
      addNote(join(here, "free"));
      const began = performance.now();
      assert.ok(await info(port), "it answers");
      slowest_ms = Math.max(slowest_ms, performance.now() - began);
      await until(`${rows} notes on the replica`, () => notes(join(there, "free"))?.rows === rows);
    }
    assert.ok(slowest_ms < within(500), `/info took ${slowest_ms} ms`);
    assert.equal((await info(port))?.term, term, primary.output);
    assert.doesNotMatch(primary.output, /lease of term/);
    for (const app of apps) assert.match(await app.run("COMMIT"), /^ok/);
    for (const name of locked) await until(`${name} is there`, () => notes(join(there, name))?.rows === 0);
    assert.deepEqual((await info(port))?.states, {});
    t.diagnostic(`/info answered within ${Math.round(slowest_ms)} ms`);
  });
});
