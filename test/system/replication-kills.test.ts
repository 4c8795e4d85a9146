/** Nodes and writers are killed at random while a writer writes as fast as it can and readers check every state. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { random, seed } from "../support.ts";
import {
  assertGood,
  freePort,
  info,
  PROVE,
  type Process,
  Stage,
  samePositionOn,
  sleep,
  until,
} from "./replication-support.ts";

interface Pair {
  stage: Stage;
  dirs: { primary: string; replica: string };
  ports: { primary: number; replica: number };
  start(which: "primary" | "replica"): Promise<Process>;
}

async function pair(t: TestContext): Promise<Pair> {
  const stage = new Stage(t);
  const dirs = { primary: stage.dir(), replica: stage.dir() };
  const ports = { primary: await freePort(), replica: await freePort() };
  const start = async (which: "primary" | "replica"): Promise<Process> => {
    const role = which === "primary" ? ["--primary"] : ["--join", `http://127.0.0.1:${ports.primary}`];
    const node = stage.node(dirs[which], ports[which], ...role);
    await until(`${which} answers`, async () => (await info(ports[which])) !== undefined);
    return node;
  };
  return { stage, dirs, ports, start };
}

suite("replication under kill -9", { timeout: 600_000 }, () => {
  test("captured is written, and readers see only what was committed", async (t) => {
    const { stage, dirs, ports, start } = await pair(t);
    await start("primary");
    await start("replica");
    const seconds = PROVE ? 60 : 6;
    await stage.writer(join(dirs.primary, "db"), 0.01).ended;
    const start_position = await samePositionOn(ports.primary, ports.replica);
    const writer = stage.writer(join(dirs.primary, "db"), seconds, 0, "vacuum schema");
    const readers = ["stay", "reopen", "slow"].map((mode) => stage.reader(join(dirs.replica, "db"), seconds - 1, mode));
    await writer.ended;
    for (const reader of readers) await reader.ended;
    const checks = readers.reduce((sum, reader) => sum + assertGood(reader, 5), 0);
    const position = await samePositionOn(ports.primary, ports.replica);
    const captured = txidOf(position) - txidOf(start_position);
    assert.equal(captured, writer.result()["transactions"]);
    t.diagnostic(`${captured} transactions, ${checks} checks, 0 bad`);
  });

  test("replicas die at random (R5)", async (t) => {
    const next = random(seed(t));
    const { stage, dirs, ports, start } = await pair(t);
    await start("primary");
    let replica = await start("replica");
    const kills = PROVE ? 100 : 12;
    const seconds = kills * 1.2 + 3;
    const writer = stage.writer(join(dirs.primary, "db"), seconds, 400, "vacuum");
    await until("the replica has it", async () => (await info(ports.replica))?.databases["db"] !== undefined);
    const readers = ["stay", "reopen", "slow"].map((mode) => stage.reader(join(dirs.replica, "db"), seconds - 2, mode));
    for (let i = 0; i < kills; i++) {
      await sleep(200 + next() * 600);
      await replica.end("SIGKILL");
      replica = await start("replica");
    }
    await writer.ended;
    for (const reader of readers) await reader.ended;
    const checks = readers.reduce((sum, reader) => sum + assertGood(reader, 5), 0);
    const position = await samePositionOn(ports.primary, ports.replica);
    t.diagnostic(`${kills} kills, ${checks} checks, 0 bad, position ${position}`);
  });

  test("the primary dies at random, and its applications go on writing (R1)", async (t) => {
    const next = random(seed(t));
    const { stage, dirs, ports, start } = await pair(t);
    let primary = await start("primary");
    await start("replica");
    const kills = PROVE ? 100 : 10;
    const seconds = kills * 1.3 + 3;
    const writer = stage.writer(join(dirs.primary, "db"), seconds, 400, "vacuum");
    await until("the replica has it", async () => (await info(ports.replica))?.databases["db"] !== undefined);
    const reader = stage.reader(join(dirs.replica, "db"), seconds - 2, "reopen");
    for (let i = 0; i < kills; i++) {
      await sleep(200 + next() * 600);
      await primary.end("SIGKILL");
      await sleep(next() * 200);
      primary = await start("primary");
    }
    await writer.ended;
    await reader.ended;
    const checks = assertGood(reader, 5);
    const position = await samePositionOn(ports.primary, ports.replica);
    const [a, b] = [dirs.primary, dirs.replica].map((dir) => facts(join(dir, "db")));
    assert.deepEqual(a, b);
    assert.equal(a?.["n"], writer.result()["n"]);
    t.diagnostic(`${kills} kills, ${checks} checks, 0 bad, position ${position}`);
  });

  test("writers die in the middle of large transactions that are never heard of", async (t) => {
    const { stage, dirs, ports, start } = await pair(t);
    await start("primary");
    await start("replica");
    const path = join(dirs.primary, "db");
    await stage.writer(path, 0.2).ended;
    const rounds = PROVE ? 40 : 6;
    for (let round = 0; round < rounds; round++) {
      await stage.run("test/system/replication-spiller.ts", [path, String(round)]).ended;
      const live = stage.writer(path, 0.3, 300);
      await live.ended;
    }
    await samePositionOn(ports.primary, ports.replica);
    const [a, b] = [dirs.primary, dirs.replica].map((dir) => facts(join(dir, "db")));
    assert.deepEqual(a, b);
    assert.equal(a?.["integrity"], "ok");
  });
});

const txidOf = (position: string): number => Number(`0x${position.slice(0, 16)}`);

function facts(path: string): Record<string, unknown> {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  try {
    const row = db.prepare("SELECT n, (SELECT count(*) FROM entry) AS entries FROM counter").get();
    return { ...row, integrity: db.prepare("PRAGMA integrity_check").get()?.["integrity_check"] };
  } finally {
    db.close();
  }
}
