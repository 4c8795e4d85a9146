/**
 * An acknowledged write survives a power cut. kill -9 cannot show that, because the page cache outlives a
 * process: here the file system under the store goes down without writing anything out. The two weaker
 * settings run through the same cuts, and must fail; if they did not, the cuts would prove nothing.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "#core/assert.ts";
import { openConnection, type Synchronous } from "#stores/sqlite/open.ts";
import { random, runs, seed, until } from "../support.ts";
import { startProgram } from "./child.ts";
import { Ext4 } from "./ext4.ts";
import { mountsMissing, ownMounts } from "./own-mounts.ts";
import { type Acks, examine, type Findings, noteAck } from "./store/load.ts";

const WRITERS = 8;

interface Tally {
  acked: number;
  lost: number;
  /** Cuts after which something acknowledged was missing, or the file was damaged. */
  harmed: number;
}

async function cutThePower(t: TestContext, synchronous: Synchronous, cuts: number): Promise<Tally> {
  const dice = random(seed(t));
  const disk = new Ext4(t, 64);
  const file = join(disk.path, "hangar.db");
  const tally: Tally = { acked: 0, lost: 0, harmed: 0 };
  let acks: Acks = new Map();
  for (let i = 0; i < cuts; i++) {
    const writer = startProgram(t, "test/system/store/writer.ts", [file, synchronous, String(WRITERS)]);
    const power = await disk.switch();
    await writer.until(/^\d+ \d+ \d+$/);
    // More than one round: on a slow disk that takes longer than what comes next.
    await until("they write", () => writer.lines.length > WRITERS);
    await delay(5 + 100 * dice());
    const at = await power.cut();
    await writer.kill();
    tally.acked += noteBefore(acks, writer.lines, at);
    disk.unmount();
    disk.mount();
    const { lost, wrong } = look(file, acks);
    tally.lost += lost;
    if (lost === 0 && wrong.length === 0) continue;
    tally.harmed++;
    t.diagnostic(`cut ${i}: ${lost} lost; ${wrong.join(", ") || "otherwise whole"}`);
    // What is harmed says nothing about the next cut.
    for (const suffix of ["", "-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true });
    acks = new Map();
  }
  t.diagnostic(`${synchronous}: ${tally.acked} acknowledged, ${tally.lost} lost; harmed by ${tally.harmed} of ${cuts}`);
  return tally;
}

/** Only what was acknowledged before the cut counts: later the disk takes nothing, whatever it says. */
function noteBefore(acks: Acks, lines: readonly string[], at: bigint): number {
  let counted = 0;
  for (const line of lines) {
    const [id, n, when] = line.split(" ");
    if (when === undefined || BigInt(when) >= at) continue;
    noteAck(acks, Number(id), Number(n));
    counted++;
  }
  return counted;
}

function look(file: string, acks: Acks): Findings {
  try {
    const db = openConnection(file);
    try {
      return examine(db, acks);
    } finally {
      db.close();
    }
  } catch (thrown) {
    // Nothing can be read, so everything is gone.
    return { lost: [...acks.values()].reduce((sum, n) => sum + n, 0), wrong: [messageOf(thrown)] };
  }
}

if (await ownMounts(import.meta.filename)) {
  suite("power cut", { skip: mountsMissing() }, () => {
    test("synchronous=FULL, which the platform uses, loses no acknowledged write (S2)", async (t) => {
      const cuts = runs(15, 200, 3000);
      const { acked, lost, harmed } = await cutThePower(t, "FULL", cuts);
      assert.deepEqual({ lost, harmed }, { lost: 0, harmed: 0 });
      assert.ok(acked > cuts * WRITERS, "the writers wrote");
    });

    test("control: synchronous=NORMAL loses acknowledged writes (S2)", async (t) => {
      const { lost } = await cutThePower(t, "NORMAL", runs(6, 40));
      assert.ok(lost > 0, "the cuts did not reach the disk");
    });

    test("control: synchronous=OFF loses acknowledged writes or damages the file (S2)", async (t) => {
      const { harmed } = await cutThePower(t, "OFF", runs(6, 40));
      assert.ok(harmed > 0, "the cuts did not reach the disk");
    });
  });
}
