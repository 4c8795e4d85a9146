/**
 * The replica's machine loses power: its file system is shut down without writing anything out, and mounted again.
 * What it then has must be a state of the primary, and it must catch up.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { random, runs, seed } from "../support.ts";
import { freePort, info, progress, Stage, samePositionOn, sleep, until } from "./replication-support.ts";

const run = (command: string, ...args: string[]): boolean => spawnSync(command, args, { stdio: "ignore" }).status === 0;

/** EXT4_IOC_SHUTDOWN with the flag that loses the journal's tail, too. */
const CUT = 'open my $d, "<", $ARGV[0] or die; my $f = pack("L", 2); ioctl($d, 0x8004587d, $f) or die "$!"';

/** A file system of its own that can be cut off. Undefined when this box cannot. */
function disk(stage: Stage): { dir: string; cut(): void } | undefined {
  const base = stage.dir();
  const [image, dir] = [join(base, "disk.img"), join(base, "mnt")];
  mkdirSync(dir);
  const made =
    run("truncate", "-s", "256M", image) &&
    run("mkfs.ext4", "-q", "-F", image) &&
    run("mount", "-o", "loop", image, dir);
  if (!made) return undefined;
  stage.later(() => run("umount", "-l", dir));
  const cut = (): void => {
    assert.ok(run("perl", "-e", CUT, dir), "the file system can be shut down");
  };
  return { dir, cut };
}

function remount({ dir }: { dir: string }): void {
  assert.ok(run("umount", dir) || run("umount", "-l", dir));
  assert.ok(run("mount", "-o", "loop", join(dir, "..", "disk.img"), dir));
}

async function scene(
  t: TestContext,
): Promise<
  { stage: Stage; here: string; ports: [number, number]; power: NonNullable<ReturnType<typeof disk>> } | undefined
> {
  const stage = new Stage(t);
  const here = stage.dir();
  const power = process.getuid?.() === 0 ? disk(stage) : undefined;
  if (!power) {
    t.skip("needs root, mkfs.ext4, loop devices and perl");
    return undefined;
  }
  return { stage, here, ports: [await freePort(), await freePort()], power };
}

/** A state the writer has committed, whatever is missing. Looked at in a copy: looking must not mend anything. */
function check(stage: Stage, path: string, when: string): void {
  if (!existsSync(path)) return;
  const copy = join(stage.dir(), "db");
  for (const end of ["", "-wal"]) if (existsSync(path + end)) copyFileSync(path + end, copy + end);
  const db = new DatabaseSync(copy);
  assert.equal(db.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok", when);
  assert.equal(db.prepare("SELECT sum(balance) AS s FROM account").get()?.["s"], 200_000, when);
  db.close();
}

suite("the replica's machine loses power", { timeout: 900_000 }, () => {
  test("again and again, while the primary is written to (R4)", async (t) => {
    const next = random(seed(t));
    const parts = await scene(t);
    if (!parts) return;
    const { stage, here, ports, power } = parts;
    stage.node(here, ports[0], "--primary");
    await until("the primary answers", async () => (await info(ports[0])) !== undefined);
    const writer = stage.writer(join(here, "db"), 900, 200);
    await until("the primary has it", async () => (await info(ports[0]))?.databases["db"] !== undefined);
    const cuts = runs(4, 100);
    const say = progress(t, cuts);
    const found: Record<string, number> = {};
    let snapshots = 0;
    for (let cut = 0; cut < cuts; cut++) {
      const replica = stage.node(power.dir, ports[1], "--join", `http://127.0.0.1:${ports[0]}`);
      const before = (await info(ports[0]))?.databases["db"] ?? "";
      await until("caught up", async () => ((await info(ports[1]))?.databases["db"] ?? "") >= before);
      const [, how = "?"] = /db: opened at \S+ \((\w+)/.exec(replica.output) ?? [];
      found[how] = (found[how] ?? 0) + 1;
      if (cut > 0 && /replaced by the primary/.test(replica.output)) snapshots++;
      await sleep(200 + next() * 800);
      power.cut();
      await replica.end("SIGKILL");
      remount(power);
      check(stage, join(power.dir, "db"), `after cut ${cut}`);
      say(cut);
    }
    await writer.end("SIGKILL");
    stage.node(power.dir, ports[1], "--join", `http://127.0.0.1:${ports[0]}`);
    const position = await samePositionOn(ports[0], ports[1]);
    t.diagnostic(
      `${cuts} cuts, opened by ${JSON.stringify(found)}, ${snapshots} snapshots needed, position ${position}`,
    );
  });
});
