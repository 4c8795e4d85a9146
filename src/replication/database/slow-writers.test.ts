/** Applications that wait: for a node that is behind, for acknowledgements; and a node that waits for them, for a checkpoint. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { isBusy } from "./connections.ts";
import type { ReplicatedDatabase } from "./database.ts";
import { Application, assertTrue, captureAll, open } from "./fixtures.ts";

interface Written {
  app: Application;
  database: ReplicatedDatabase;
  refused(): boolean;
  pass(ms: number): void;
}

function written(t: TestContext): Written {
  const dir = tempDir();
  const app = new Application(join(dir, "db"), 4096, 0);
  let now_ms = 0;
  const { database } = open(dir, "db", { clock: { ...systemClock, monotonic: () => now_ms++ } });
  database.release();
  t.after(() => {
    if (!database.closed) database.close();
    app.close();
  });
  const refused = (): boolean => {
    try {
      app.write();
      return false;
    } catch (error) {
      if (!isBusy(error)) throw error;
      return true;
    }
  };
  const pass = (ms: number): void => {
    now_ms += ms;
  };
  return { app, database, refused, pass };
}

suite("applications and the locks of a primary", () => {
  test("writers that are too fast wait for a second at most, and those without acknowledgement until there is one", (t) => {
    const { database, refused, pass } = written(t);
    for (const firm of [false, true]) {
      assert.ok(!refused());
      database.slowWriters(true, firm);
      assert.ok(refused());
      pass(REPLICATION_LIMITS.slow_writers_ms - 100);
      database.slowWriters(true, firm);
      assert.ok(refused());
      pass(200);
      database.slowWriters(true, firm);
      assert.equal(refused(), firm);
      database.slowWriters(false);
    }
    assert.ok(!refused());
  });

  test("an application's own FULL, RESTART and TRUNCATE checkpoints succeed after a few looks, and nothing is missed", async (t) => {
    const { app, database } = written(t);
    const start = database.position.txid;
    const checkpoint = (mode: string): unknown => app.db.prepare(`PRAGMA wal_checkpoint(${mode})`).get()?.["busy"];
    for (const mode of ["FULL", "RESTART", "TRUNCATE"]) {
      for (let i = 0; i < 3; i++) {
        app.write();
        captureAll(database);
      }
      await database.durable();
      let looks = 0;
      // What is not busy for a moment succeeds at once.
      for (; checkpoint(mode) !== 0; looks++) {
        assert.ok(looks < 10, `${mode} does not succeed`);
        database.capture();
      }
      assert.ok(looks > 0, "it was not ours to let it succeed");
    }
    app.write();
    captureAll(database);
    assert.equal(database.position.txid, start + 10);
    assertTrue({ database, announced: [] });
  });
});
