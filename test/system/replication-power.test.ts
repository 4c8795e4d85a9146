/**
 * A machine loses power: its file system is shut down without writing anything out, and mounted again. A replica must then
 * have a state of the primary, and catch up. A primary must have every transaction it has published.
 */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { random, runs, seed, until } from "../support.ts";
import { Ext4 } from "./ext4.ts";
import { mountsMissing, ownMounts } from "./own-mounts.ts";
import { freePort, info, type Process, positionOn, progress, Stage, samePositionOn } from "./replication-support.ts";

const PATIENCE_MS = 240_000;
const NODE = "test/system/replication-crash-node.ts";

/** Cuts the power with all its processes, and restores it. */
async function cutPower(disk: Ext4, ...users: readonly Process[]): Promise<void> {
  const power = await disk.switch();
  await power.cut();
  await Promise.all(users.map((user) => user.end("SIGKILL")));
  disk.unmount();
  disk.mount();
}

/**
 * A state the writer has committed, whatever is missing; answers how far it had come. Looked at in a copy: looking must
 * not mend anything.
 */
function check(stage: Stage, path: string, when: string): number {
  if (!existsSync(path)) return 0;
  const copy = join(stage.dir(), "db");
  for (const end of ["", "-wal"]) if (existsSync(path + end)) copyFileSync(path + end, copy + end);
  const db = new DatabaseSync(copy);
  try {
    assert.equal(db.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok", when);
    // Of a database whose power went right after it was made, there may be nothing yet.
    if (!db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'counter'").get()) return 0;
    const { n, sum } = { ...db.prepare("SELECT n, (SELECT sum(balance) FROM account) AS sum FROM counter").get() };
    assert.ok(sum === 200_000 || n === undefined, when);
    return Number(n ?? 0);
  } finally {
    db.close();
  }
}

/** The first transaction in a node's log: later than before when old ones were deleted. */
function firstLogged(dir: string): string {
  const log = join(dir, ".replication", "dbs", "db", "log");
  return existsSync(log) ? (readdirSync(log).sort()[0] ?? "") : "";
}

const count = (text: string, what: RegExp): number => text.match(what)?.length ?? 0;

/** Moments around the emptying of SQLite's log, at which a power cut is most interesting. */
const STEPS = ["unlocked", "truncated", "relocked", "wal-header", "published"];

async function cutReplica(t: TestContext): Promise<void> {
  const next = random(seed(t));
  const stage = new Stage(t);
  const disk = new Ext4(t, 256);
  const here = stage.dir();
  const ports = [await freePort(), await freePort()] as const;
  stage.node(here, ports[0], "--primary");
  await until("the primary answers", async () => (await info(ports[0])) !== undefined);
  // Slowly enough for a replica that empties its log every second on a disk that others use, too.
  const writer = stage.writer(join(here, "db"), 900, 100);
  const start = (...at: string[]) =>
    stage.run(NODE, [disk.path, String(ports[1]), `http://127.0.0.1:${ports[0]}`, ...at]);
  const cuts = runs(8, 60, 1000);
  const say = progress(t, cuts);
  const found: Record<string, number> = {};
  const seen = { snapshots: 0, emptied: 0, died: 0, deleted: 0 };
  for (let cut = 0; cut < cuts; cut++) {
    const before = await positionOn(ports[0]);
    const first = firstLogged(disk.path);
    const step = cut % 2 === 1 ? [STEPS[(cut >> 1) % STEPS.length] ?? "", String(1 + Math.floor(next() * 3))] : [];
    const replica = start(...step);
    if (step.length > 0) {
      await replica.ended;
    } else {
      const caughtUp = async (): Promise<boolean> => ((await info(ports[1]))?.databases["db"] ?? "") >= before;
      await until("caught up", caughtUp, { limit_ms: PATIENCE_MS }).catch((cause: unknown) => {
        throw new Error(`cut ${cut}, ${before} not reached: ${replica.output.slice(-2000)}`, { cause });
      });
      await delay(500 + next() * 1000);
    }
    if (first !== "" && firstLogged(disk.path) > first) seen.deleted++;
    await cutPower(disk, replica);
    check(stage, join(disk.path, "db"), `after cut ${cut}`);
    const [, how = "?"] = /db: opened at \S+ \((\w+)/.exec(replica.output) ?? [];
    found[how] = (found[how] ?? 0) + 1;
    if (cut > 0) seen.snapshots += count(replica.output, /replaced by the primary/g);
    seen.emptied += count(replica.output, /^emptied$/gm);
    seen.died += count(replica.output, /^died at/gm);
    say(cut);
  }
  await writer.end("SIGKILL");
  start();
  const position = await samePositionOn(ports[0], ports[1]);
  t.diagnostic(`${cuts} cuts, opened by ${JSON.stringify(found)}, ${JSON.stringify(seen)}, position ${position}`);
  assert.equal(seen.died, cuts >> 1, "each step was reached");
  assert.ok(seen.emptied > 0 && seen.deleted > 0, "logs were emptied and deleted meanwhile");
}

interface Told {
  txid: string;
  checksum: string;
}

/** The last transaction a node has published. */
function listen(stage: Stage, port: number): { last: Told | undefined } {
  const heard: { last: Told | undefined } = { last: undefined };
  let rest = "";
  const request = get(`http://127.0.0.1:${port}/events`, (response) => {
    response.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { type, data } = JSON.parse(line) as { type: string; data: { txID: string; postApplyChecksum: string } };
        if (type === "tx") heard.last = { txid: data.txID, checksum: data.postApplyChecksum };
      }
    });
    response.on("error", () => undefined);
  });
  request.on("error", () => undefined);
  stage.later(() => request.destroy());
  return heard;
}

/** How often SQLite's log was begun anew: the log counts that itself. */
function generation(path: string): number {
  return existsSync(`${path}-wal`) ? readFileSync(`${path}-wal`).readUInt32BE(12) : 0;
}

/** What a node's log says about one transaction: its checksum. */
async function checksumOn(port: number, txid: number): Promise<string | undefined> {
  const body = JSON.stringify({ databases: { db: txid } });
  const answer = await fetch(`http://127.0.0.1:${port}/positions`, { method: "POST", body });
  return ((await answer.json()) as { db?: { checksum?: string } }).db?.checksum;
}

async function cutPrimary(t: TestContext): Promise<void> {
  const next = random(seed(t));
  const stage = new Stage(t);
  const disk = new Ext4(t, 256);
  const port = await freePort();
  const path = join(disk.path, "db");
  const cuts = runs(4, 30, 500);
  let told: Told | undefined;
  let begun = 0;
  let entries = 0;
  let put_back = 0;
  for (let cut = 0; cut <= cuts; cut++) {
    const primary = stage.run(NODE, [disk.path, String(port), "primary"]);
    await until("it answers", async () => (await info(port)) !== undefined);
    if (told) {
      await until("the database is open", async () => (await info(port))?.databases["db"] !== undefined);
      const found = await checksumOn(port, Number(`0x${told.txid}`));
      const where = `after cut ${cut}: ${told.txid} was told, the log begins with ${firstLogged(disk.path)}`;
      assert.equal(found, told.checksum, `${where}; ${primary.output}`);
      if (check(stage, path, `after cut ${cut}`) > entries) put_back++;
    }
    if (cut === cuts) break;
    const heard = listen(stage, port);
    // synchronous = NORMAL: SQLite itself makes nothing durable before a checkpoint.
    const writer = stage.writer(path, 900, 300);
    // Past those that make the tables.
    const enough = Number(`0x${told?.txid ?? "0"}`) + 20;
    await until("something is told", () => Number(`0x${heard.last?.txid ?? "0"}`) > enough);
    await delay(300 + next() * 1200);
    // Once at least, however long that takes here.
    if (cut === 0) await until("SQLite's log is begun anew", () => generation(path) > 0);
    begun = Math.max(begun, generation(path));
    // Later events may have been published after the cut, when the disk writes nothing, although it reports success.
    told = heard.last;
    await cutPower(disk, primary, writer);
    entries = check(stage, path, `before the node is back, cut ${cut}`);
  }
  t.diagnostic(`${cuts} cuts, ${told?.txid} the last transaction told, SQLite's log begun anew up to ${begun} times`);
  assert.ok(begun > 0, "SQLite's log was begun anew meanwhile");
  assert.ok(put_back > 0, "SQLite alone did lose some of it, so the cuts reached the disk");
}

if (await ownMounts(import.meta.filename)) {
  suite("power cuts of a database node", { timeout: 900_000, skip: mountsMissing() }, () => {
    test("a replica catches up after power cuts, also during truncation and deletion of its logs (R4)", cutReplica);
    test(
      "a primary has all announced transactions after power cuts, also those SQLite had not synced (R4)",
      cutPrimary,
    );
  });
}
