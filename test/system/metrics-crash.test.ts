/** T1: what a crash costs. kill -9 costs nothing that was appended, a power cut nothing that was flushed. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { random, runs, seed, tempDir } from "../support.ts";
import { Ext4 } from "./ext4.ts";
import { roundsLeft, roundTime, startWriter } from "./metrics-rounds.ts";
import { mountsMissing, ownMounts } from "./own-mounts.ts";

const KILLS = runs(8, 60, 1000);
const CUTS = runs(4, 30, 500);
/** The second the database takes, and one more for the sync itself; many more where others use the disk, too. */
const SYNC_MS = runs(8000, 2000, 2000);
/** The control must show a loss within so many cuts. */
const CONTROL_CUTS = 5;

if (await ownMounts(import.meta.filename)) {
  suite("metrics after a crash", () => {
    test(`${KILLS} × kill -9: no appended sample is lost (T1)`, { timeout: 600_000 }, async (t) => {
      const roll = random(seed(t));
      const dir = tempDir();
      let next = 0;
      let blocks = 0;
      // On a slow box a few more, so that there are blocks among what is killed.
      for (let run = 0; run < KILLS || (blocks === 0 && run < 10 * KILLS); run++) {
        const writer = startWriter(t, dir, next, "sync");
        await writer.begun;
        await sleep(roll() * 400);
        await writer.kill();
        const left = await roundsLeft(dir, roundTime(next + 1e6));
        assert.deepEqual(left.odd, [], `run ${run}`);
        assert.ok(
          left.rounds > writer.said.appended,
          `run ${run}: ${left.rounds} rounds, ${writer.said.appended} appended`,
        );
        assert.ok(left.rounds > next, "each run adds something");
        next = left.rounds;
        blocks = Math.max(blocks, left.blocks);
      }
      assert.ok(blocks > 0, "the runs were long enough for blocks");
      assert.ok(!readdirSync(dir).includes("quarantine"), "nothing looked damaged");
      t.diagnostic(`${next} rounds, ${blocks} blocks`);
    });

    test(`${CUTS} power cuts: no flushed sample is lost, and blocks are complete (T1)`, {
      timeout: 600_000,
      skip: mountsMissing(),
    }, async (t) => {
      const roll = random(seed(t));
      const disk = new Ext4(t, 96);
      const dir = join(disk.path, "org");
      let next = 0;
      let blocks = 0;
      for (let run = 0; run < CUTS || (blocks === 0 && run < 10 * CUTS); run++) {
        const writer = startWriter(t, dir, next, "sync");
        await writer.begun;
        await sleep(roll() * 600);
        const power = await disk.switch();
        const { flushed } = writer.said;
        await power.cut();
        await writer.kill();
        disk.unmount();
        disk.mount();
        const left = await roundsLeft(dir, roundTime(next + 1e6));
        assert.deepEqual(left.odd, [], `run ${run}`);
        assert.ok(flushed >= next, `run ${run}: nothing was flushed`);
        assert.ok(left.rounds > flushed, `run ${run}: ${left.rounds} rounds left, flushed up to ${flushed}`);
        next = left.rounds;
        blocks = Math.max(blocks, left.blocks);
      }
      assert.ok(blocks > 0, "the runs were long enough for blocks");
      t.diagnostic(`${next} rounds, ${blocks} blocks`);
    });

    test("power cuts without a flush lose at most the last second (T1)", {
      timeout: 600_000,
      skip: mountsMissing(),
    }, async (t) => {
      const disk = new Ext4(t, 96);
      const dir = join(disk.path, "org");
      let next = 0;
      for (let run = 0; run < runs(1, 5); run++) {
        const writer = startWriter(t, dir, next, "timer");
        await writer.begun;
        await sleep(SYNC_MS + 1500);
        const power = await disk.switch();
        const old = writer.appendedBefore(SYNC_MS);
        await power.cut();
        await writer.kill();
        disk.unmount();
        disk.mount();
        const left = await roundsLeft(dir, roundTime(next + 1e6));
        assert.deepEqual(left.odd, [], `run ${run}`);
        assert.ok(old > next && left.rounds > old, `run ${run}: ${left.rounds} rounds left, ${old} were a second old`);
        next = left.rounds;
      }
    });

    test("control: without fsync power cuts lose samples (T1)", {
      timeout: 600_000,
      skip: mountsMissing(),
    }, async (t) => {
      for (let run = 0; run < CONTROL_CUTS; run++) {
        const disk = new Ext4(t, 96);
        const dir = join(disk.path, "org");
        const writer = startWriter(t, dir, 0, "nosync");
        await writer.begun;
        await sleep(300);
        const power = await disk.switch();
        const { flushed } = writer.said;
        await power.cut();
        await writer.kill();
        disk.unmount();
        disk.mount();
        const { rounds } = await roundsLeft(dir, roundTime(1e6));
        if (rounds <= flushed) return;
      }
      assert.fail("cuts without syncing lost nothing: the test above would not notice a loss either");
    });
  });
}
