import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { WriteWatch, type Written } from "./write-watch.ts";

/** Longer than any test may take. */
const NEVER_MS = 3_600_000;

function watched(t: TestContext): { app: DatabaseSync; database: Written & { has_uncaptured: boolean } } {
  const path = join(tempDir(), "db");
  const app = new DatabaseSync(path);
  t.after(() => app.close());
  app.exec("PRAGMA journal_mode = WAL; CREATE TABLE entry (n INTEGER)");
  return { app, database: { path, has_uncaptured: false } };
}

function watch(t: TestContext, ...databases: Written[]): WriteWatch<Written> {
  const writes = new WriteWatch<Written>();
  writes.follow(databases);
  t.after(() => writes.close());
  return writes;
}

/** A watch and its timers do not hold the process open, and a test must not end with them. */
async function awake(work: () => Promise<void>): Promise<void> {
  const holding = setInterval(() => undefined, 1000);
  await work().finally(() => clearInterval(holding));
}

suite("write watch", () => {
  test("wakes when an application writes to the WAL, and expects a commit from then on", {
    timeout: 60_000,
  }, async (t) => {
    const { app, database } = watched(t);
    const writes = watch(t, database);
    assert.equal(writes.quiet, true);
    await awake(() => {
      const woken = writes.pause(NEVER_MS);
      app.exec("INSERT INTO entry VALUES (1)");
      return woken;
    });
    assert.equal(writes.quiet, false);
    assert.equal(writes.committed(performance.now()), false, "frames alone are no commit");
    database.has_uncaptured = true;
    assert.equal(writes.committed(performance.now()), true);
  });

  test("looks again soon while a commit is expected, and stops expecting one that does not come", {
    timeout: 60_000,
  }, async (t) => {
    const { app, database } = watched(t);
    const writes = watch(t, database);
    app.exec("INSERT INTO entry VALUES (1)");
    await awake(async () => {
      await writes.pause(NEVER_MS);
      // Nothing wakes this one but its own short timer.
      await writes.pause(NEVER_MS);
    });
    assert.equal(writes.committed(performance.now() + REPLICATION_LIMITS.commit_expected_ms + 1), false);
    assert.equal(writes.quiet, true);
  });

  test("is not quiet while a WAL cannot be watched, nor wakes for one that it follows no more", {
    timeout: 60_000,
  }, async (t) => {
    const { app, database } = watched(t);
    const writes = watch(t, database, { path: `${database.path}-missing`, has_uncaptured: false });
    assert.equal(writes.quiet, false);
    writes.follow([]);
    assert.equal(writes.quiet, true);
    app.exec("INSERT INTO entry VALUES (1)");
    await awake(() => writes.pause(20));
    assert.equal(writes.quiet, true);
  });
});
