/** A replica is killed at each step of applying, with readers watching, with none, and with one that may write. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { assertGood, freePort, info, PROVE, Stage, samePositionOn, until } from "./replication-support.ts";

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

suite("a replica dies at every step", { timeout: 600_000 }, () => {
  for (const watched of PROVE ? ["readers", "nobody", "a writer's connection"] : ["readers"]) {
    test(`watched by ${watched}`, async (t) => {
      const stage = new Stage(t);
      const [here, there] = [stage.dir(), stage.dir()];
      const ports = [await freePort(), await freePort()] as const;
      const url = `http://127.0.0.1:${ports[0]}`;
      const path = join(there, "db");
      stage.node(here, ports[0], "--primary");
      await until("the primary answers", async () => (await info(ports[0])) !== undefined);
      const writer = stage.writer(join(here, "db"), 600, 150);
      const replica = (...args: string[]) =>
        stage.run("test/system/replication-crash-node.ts", [there, String(ports[1]), url, ...args]);
      let node = replica();
      await until("the first copy", async () => (await info(ports[1]))?.databases["db"] !== undefined);
      const readers = watched === "readers" ? ["stay", "reopen"].map((mode) => stage.reader(path, 600, mode)) : [];
      for (const step of STEPS) {
        await node.end("SIGKILL");
        node = replica(step, RARE.has(step) ? "1" : "20");
        await node.ended;
        assert.match(node.output, new RegExp(`died at ${step}`), node.output);
        if (watched !== "nobody") assert.deepEqual(integrity(path, watched === "readers"), ["ok", 200_000], step);
        node = replica();
        const before = (await info(ports[0]))?.databases["db"] ?? "";
        await until(`caught up after ${step}`, async () => ((await info(ports[1]))?.databases["db"] ?? "") >= before);
        assert.doesNotMatch(node.output, /replaced by the primary/, `${step}: ${node.output}`);
        assert.deepEqual(integrity(path, true), ["ok", 200_000], step);
      }
      for (const reader of readers) reader.child.kill("SIGTERM");
      for (const reader of readers) await reader.ended;
      const checks = readers.reduce((sum, reader) => sum + assertGood(reader, 20), 0);
      await writer.end("SIGKILL");
      t.diagnostic(`${STEPS.length} steps, ${checks} checks, position ${await samePositionOn(ports[0], ports[1])}`);
    });
  }
});
