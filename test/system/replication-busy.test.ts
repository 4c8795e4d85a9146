/** A box that has too much to do: nodes are late then, and no primary loses its lease over that. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { runs } from "../support.ts";
import { Cluster } from "./replication-cluster.ts";
import { info, Stage, samePositionOn } from "./replication-support.ts";

/** Several for each core that compute, and as many that write and sync. */
const BUSY_PER_CORE = 4;

function makeBusy(stage: Stage): void {
  for (let n = 0; n < BUSY_PER_CORE * availableParallelism(); n++) {
    const file = join(stage.dir(), "written");
    const programs = [
      ["sh", "-c", "while :; do :; done"],
      ["sh", "-c", 'while :; do dd if=/dev/zero of="$0" bs=64k count=16 conv=fsync 2>/dev/null; done', file],
    ];
    for (const [program = "", ...args] of programs) {
      const child = spawn(program, args, { stdio: "ignore", detached: true });
      stage.later(async () => {
        // With the dd that it runs at this moment.
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      });
    }
  }
}

suite("database nodes under CPU load", { timeout: 600_000 }, () => {
  test("no failover happens without a kill, and writers go on", async (t) => {
    const stage = new Stage(t);
    const cluster = await Cluster.start(stage, 3);
    const primary = await cluster.whole();
    const db = new DatabaseSync(cluster.path(primary), { timeout: 10_000 });
    db.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (n INTEGER PRIMARY KEY)");
    db.close();
    for (const { port } of cluster.others(primary)) await samePositionOn(primary.port, port);
    const before = await info(primary.port);
    makeBusy(stage);
    const seconds = runs(5, 60, 600);
    const writer = stage.writer(cluster.path(primary), seconds, 50);
    await pause(seconds * 1000);
    await writer.ended;
    const lost = cluster.members.flatMap(({ process: { output } }) => output.match(/^.*lease of term .*$/gm) ?? []);
    assert.deepEqual(lost, []);
    const after = (await info(primary.port)) ?? (await info(primary.port));
    assert.deepEqual([after?.isPrimary, after?.term], [true, before?.term]);
    const { transactions } = writer.result();
    t.diagnostic(`${seconds} s, ${String(transactions)} transactions, no failover`);
    assert.ok(Number(transactions) > seconds);
  });
});
