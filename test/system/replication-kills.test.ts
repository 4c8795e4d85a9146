/** Nodes and writers are killed at random while a writer writes as fast as it can and readers check every state. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { random, runs, seed, until } from "../support.ts";
import { assertGood, freePort, info, type Process, progress, Stage, samePositionOn } from "./replication-support.ts";

/** Ways to read; Debian's sqlite3 is another version of SQLite than the node has. */
const READERS = ["stay", "reopen", "slow", ...(spawnSync("sqlite3", ["-version"]).status === 0 ? ["cli"] : [])];

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

suite("replication under kill -9", { timeout: runs(600_000, 1_800_000) }, () => {
  test("captured transactions are durable, and readers see only committed ones (R1)", async (t) => {
    const { stage, dirs, ports, start } = await pair(t);
    await start("primary");
    await start("replica");
    const [seconds, wanted] = [runs(2, 30, 60), runs(8, 10_000, 20_000)];
    const say = progress(t, wanted);
    await stage.writer(join(dirs.primary, "db"), 0.01).ended;
    let [checks, captured, pass] = [0, 0, 0];
    let before = await mark(dirs, ports, pass);
    while (checks < wanted) {
      const writer = stage.writer(join(dirs.primary, "db"), seconds, 0, "vacuum schema");
      const readers = READERS.map((mode) => stage.reader(join(dirs.replica, "db"), seconds - 1, mode));
      await writer.ended;
      for (const reader of readers) await reader.ended;
      checks += readers.reduce((sum, reader) => sum + assertGood(reader, 5), 0);
      const after = await mark(dirs, ports, ++pass);
      assert.equal(after - before, Number(writer.result()["transactions"]) + 1, "what was written, and the mark");
      captured += after - before;
      before = after;
      say(checks);
    }
    t.diagnostic(`${captured} transactions, ${checks} checks by ${READERS.join(", ")}, 0 bad`);
  });

  test("replicas killed at random stay consistent (R5)", async (t) => {
    const next = random(seed(t));
    const { stage, dirs, ports, start } = await pair(t);
    await start("primary");
    let replica = await start("replica");
    const kills = runs(2, 60, 1000);
    const say = progress(t, kills);
    const seconds = kills * 1.2 + 3;
    const writer = stage.writer(join(dirs.primary, "db"), seconds, 400, "vacuum");
    await until("the replica has it", async () => (await info(ports.replica))?.databases["db"] !== undefined);
    const readers = READERS.map((mode) => stage.reader(join(dirs.replica, "db"), seconds - 2, mode));
    for (let i = 0; i < kills; i++) {
      await delay(200 + next() * 600);
      await replica.end("SIGKILL");
      replica = await start("replica");
      say(i);
    }
    await writer.ended;
    for (const reader of readers) await reader.ended;
    const checks = readers.reduce((sum, reader) => sum + assertGood(reader, 5), 0);
    const position = await samePositionOn(ports.primary, ports.replica);
    t.diagnostic(`${kills} kills, ${checks} checks, 0 bad, position ${position}`);
  });

  test("the primary is killed at random while its applications keep writing (R1)", async (t) => {
    const next = random(seed(t));
    const { stage, dirs, ports, start } = await pair(t);
    let primary = await start("primary");
    await start("replica");
    const kills = runs(2, 60, 1000);
    const say = progress(t, kills);
    const seconds = kills * 1.3 + 3;
    const writer = stage.writer(join(dirs.primary, "db"), seconds, 400, "vacuum");
    await until("the replica has it", async () => (await info(ports.replica))?.databases["db"] !== undefined);
    const reader = stage.reader(join(dirs.replica, "db"), seconds - 2, "reopen");
    for (let i = 0; i < kills; i++) {
      await delay(200 + next() * 600);
      await primary.end("SIGKILL");
      await delay(next() * 200);
      primary = await start("primary");
      say(i);
    }
    await writer.ended;
    await reader.ended;
    const checks = assertGood(reader, 5);
    assert.equal((await sameFacts(dirs))["n"], writer.result()["n"]);
    const position = await samePositionOn(ports.primary, ports.replica);
    t.diagnostic(`${kills} kills, ${checks} checks, 0 bad, position ${position}`);
  });

  test("writers killed in large transactions leave primary and replica equal and intact", async (t) => {
    const { stage, dirs, ports, start } = await pair(t);
    await start("primary");
    await start("replica");
    const path = join(dirs.primary, "db");
    await stage.writer(path, 0.2).ended;
    const rounds = runs(1, 25, 400);
    let died = 0;
    for (let round = 0; round < rounds; round++) {
      const spiller = stage.run("test/system/replication-spiller.ts", [path, String(round)]);
      const code = await spiller.ended;
      if (spiller.child.signalCode === "SIGKILL") died++;
      else assert.equal(code, 0, spiller.output);
      const live = stage.writer(path, 0.3, 300);
      assert.equal(await live.ended, 0, live.output);
    }
    assert.ok(died > 0, "no writer died");
    assert.equal((await sameFacts(dirs))["integrity"], "ok");
    await samePositionOn(ports.primary, ports.replica);
  });
});

/** Waits until the replica has what the primary's application wrote. Equal positions do not say that: the primary may not have looked yet. */
async function sameFacts(dirs: Pair["dirs"]): Promise<ReturnType<typeof facts>> {
  const of = (dir: string): ReturnType<typeof facts> => facts(join(dir, "db"));
  await until("the replica has what the primary has", () => isDeepStrictEqual(of(dirs.primary), of(dirs.replica)));
  return of(dirs.primary);
}

/** Writes a mark, waits until the replica has it, and with it everything before, and returns its transaction. */
async function mark(dirs: Pair["dirs"], ports: Pair["ports"], value: number): Promise<number> {
  const db = new DatabaseSync(join(dirs.primary, "db"), { timeout: 20_000 });
  if (value === 0) db.exec("CREATE TABLE mark (value INTEGER)");
  db.exec(`INSERT INTO mark VALUES (${value})`);
  db.close();
  await until(`mark ${value} on the replica`, () => marks(join(dirs.replica, "db")) === value + 1);
  return txidOf(await samePositionOn(ports.primary, ports.replica));
}

function marks(path: string): number {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
    return Number(db.prepare("SELECT count(*) AS n FROM mark").get()?.["n"]);
  } catch {
    return 0; // Neither the file nor the table need be there yet.
  } finally {
    db?.close();
  }
}

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
