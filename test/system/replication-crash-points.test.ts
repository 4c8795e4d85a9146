/** A replica is killed at each step of applying, with readers watching, with none, and with one that may write. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { runs, until } from "../support.ts";
import { assertGood, freePort, info, type Process, positionOn, Stage, samePositionOn } from "./replication-support.ts";

const STEPS = [
  "logged",
  "wal-header",
  "half-frames",
  "frames",
  "index",
  "half-header",
  "published",
  "unlocked",
  "truncated",
  "relocked",
];
/** On a disk that others use, too, each emptying of the log takes its time. */
const PATIENCE_MS = 240_000;
/** Steps that only come with a checkpoint, so once in a while. */
const RARE = new Set(["wal-header", "unlocked", "truncated", "relocked"]);

function integrity(path: string, readOnly: boolean): unknown {
  const db = new DatabaseSync(path, { readOnly, timeout: 5000 });
  try {
    const sum = db.prepare("SELECT sum(balance) AS s FROM account").get()?.["s"];
    return [db.prepare("PRAGMA integrity_check").get()?.["integrity_check"], sum];
  } finally {
    db.close();
  }
}

/** A primary that is written to all the time, and a replica that can be started again and again. */
async function scene(t: TestContext): Promise<Scene> {
  const stage = new Stage(t);
  const [here, there] = [stage.dir(), stage.dir()];
  const ports = [await freePort(), await freePort()] as const;
  stage.node(here, ports[0], "--primary");
  await until("the primary answers", async () => (await info(ports[0])) !== undefined);
  const writer = stage.writer(join(here, "db"), 600, 150);
  const args = [there, String(ports[1]), `http://127.0.0.1:${ports[0]}`];
  const replica = (...more: string[]): Process =>
    stage.run("test/system/replication-crash-node.ts", [...args, ...more]);
  return { stage, ports, path: join(there, "db"), writer, replica };
}

interface Scene {
  stage: Stage;
  ports: readonly [primary: number, replica: number];
  path: string;
  writer: Process;
  replica(...args: string[]): Process;
}

/** Kills a replica at `step`, starts it again, and leaves it running. */
async function dieAt(step: string, { ports, path, replica }: Scene, watched: string): Promise<Process> {
  const dying = replica(step, RARE.has(step) ? "1" : "20");
  await dying.ended;
  assert.match(dying.output, new RegExp(`died at ${step}`), dying.output);
  if (watched !== "nobody") assert.deepEqual(integrity(path, watched === "readers"), ["ok", 200_000], step);
  const again = replica();
  const before = await positionOn(ports[0]);
  const caughtUp = async (): Promise<boolean> => ((await info(ports[1]))?.databases["db"] ?? "") >= before;
  await until(`caught up after ${step}`, caughtUp, { limit_ms: PATIENCE_MS });
  assert.doesNotMatch(again.output, /replaced by the primary/, `${step}: ${again.output}`);
  assert.deepEqual(integrity(path, true), ["ok", 200_000], step);
  return again;
}

suite("replica killed at every step", { timeout: 600_000 }, () => {
  for (const watched of ["readers", "nobody", "a writer's connection"].slice(0, runs(1, 3))) {
    test(`a replica killed at each of its steps recovers, watched by ${watched}`, async (t) => {
      const parts = await scene(t);
      const { stage, ports, path, writer } = parts;
      let node = parts.replica();
      await until("the first copy", async () => (await info(ports[1]))?.databases["db"] !== undefined);
      const readers = watched === "readers" ? ["stay", "reopen"].map((mode) => stage.reader(path, 600, mode)) : [];
      for (const step of STEPS) {
        await node.end("SIGKILL");
        node = await dieAt(step, parts, watched);
      }
      for (const reader of readers) reader.child.kill("SIGTERM");
      for (const reader of readers) await reader.ended;
      const checks = readers.reduce((sum, reader) => sum + assertGood(reader, 20), 0);
      await writer.end("SIGKILL");
      t.diagnostic(`${STEPS.length} steps, ${checks} checks, position ${await samePositionOn(ports[0], ports[1])}`);
    });
  }
});
