/** The primary's halt locks end by themselves, so that a replica that is gone does not stop the writers for good. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../test/support.ts";
import { isBusy } from "../database/connections.ts";
import { Application, openAll } from "../database/fixtures.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Directory } from "./directory.ts";
import { HaltLocks } from "./halt-locks.ts";
import { Streams } from "./streams.ts";

const { halt_ms } = REPLICATION_LIMITS;
const REPLICA = "0123456789abcdef";

async function locked(t: TestContext) {
  const dir = tempDir();
  const app = new Application(join(dir, "db"), 4096, 0);
  const nothing = (): void => undefined;
  const parts = { dir, node_id: 1n, clock: systemClock, onTransactions: nothing, onUndone: nothing, log: nothing };
  const directory = new Directory({ ...parts, onFailure: (error) => assert.fail(String(error)) });
  for (const database of openAll(directory)) database.release();
  t.after(() => {
    directory.close();
    app.close();
  });
  const in_sync = { connected: nothing, disconnected: nothing, ready: nothing, forget: nothing };
  const streams = new Streams({ directory, in_sync, clock: systemClock, log: nothing });
  Object.defineProperty(streams, "replicas", { value: [{ node: REPLICA }] });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const halts = new HaltLocks({ clock: systemClock, role: { kind: "primary", term: 1 }, directory, streams });
  const { id } = await halts.acquire(REPLICA, "db");
  const refused = (): boolean => {
    try {
      app.write();
      return false;
    } catch (error) {
      if (!isBusy(error)) throw error;
      return true;
    }
  };
  return { halts, id, refused };
}

suite("halt locks of a primary", () => {
  test("a lock that is not renewed ends, and then nothing is applied with it", async (t) => {
    const { halts, id, refused } = await locked(t);
    t.mock.timers.tick(halt_ms - 1);
    assert.ok(refused());
    t.mock.timers.tick(1);
    assert.ok(!refused());
    await assert.rejects(halts.apply("db", id, Buffer.alloc(0)), /halt lock of db expired/);
    assert.throws(() => halts.renew("db", id), /halt lock of db expired/);
    assert.throws(() => halts.release("db", id), /halt lock of db expired/);
  });

  test("a renewed lock ends as long after that", async (t) => {
    const { halts, id, refused } = await locked(t);
    t.mock.timers.tick(halt_ms - 1);
    halts.renew("db", id);
    t.mock.timers.tick(halt_ms - 1);
    assert.ok(refused());
    t.mock.timers.tick(1);
    assert.ok(!refused());
  });
});
