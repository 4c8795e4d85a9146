/** Volumes on a full disk: refused in words, nothing half made, deleting works, and with room it goes on. */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { LoopDisk } from "#drivers/disk/loop.ts";
import { run } from "#drivers/disk/programs.ts";
import type { DiskVolume } from "#volumes/disk.ts";
import { until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { Ext4 } from "./ext4.ts";
import { fill } from "./fill.ts";
import { ownMounts } from "./own-mounts.ts";

const BASE = "/v1/apps/web/volumes";
const VOLUMES = 4;
const POOL_MIB = 128;
/** So many transactions fill a volume's journal. */
const JOURNAL = 3000;

const create = (daemon: Daemon, name: string) =>
  daemon.call("POST", BASE, { name, size_gb: 1, encrypted: false, require_unique_zone: false });

/** Appends lines to a file, each made durable; answers those for which that was said. */
function append(file: string, count: number, name: string): string[] {
  const told: string[] = [];
  for (let n = 0; n < count; n++) {
    try {
      writeFileSync(file, `${name} ${n}\n`, { flag: "a", flush: true });
      told.push(`${name} ${n}`);
    } catch {
      // Then nothing is promised.
    }
  }
  return told;
}

if (await ownMounts(import.meta.filename)) {
  suite("volumes on a full disk", { skip: volumesMissing() }, () => {
    test("create and snapshot are refused, and delete works with not a byte free (S3b)", async (t) => {
      const disk = new Ext4(t, 96);
      const data = join(disk.path, "data");
      const daemon = await startDaemon(t, data, ["--volume-disk", "loop", "--volume-pool", "plain"]);
      await daemon.call("POST", "/v1/apps", { app_name: "web" });
      const ids: string[] = [];
      for (let i = 0; i < VOLUMES; i++) ids.push(String((await create(daemon, `v${i}`)).body["id"]));
      fill(disk.path);

      for (let i = 0; i < 3; i++) {
        const { status, body } = await create(daemon, `more${i}`);
        assert.deepEqual([status, body["status"]], [503, "storage_full"], JSON.stringify(body));
        fill(disk.path);
      }
      const asked = await daemon.call("POST", `${BASE}/${ids[0]}/snapshots`);
      if (asked.status === 200) {
        // It could be written down; then it is tried until there is room, and harms nobody.
        const { body } = await daemon.call("GET", `${BASE}/${ids[0]}`);
        assert.equal(body["state"], "created");
      } else assert.equal(asked.body["status"], "storage_full");

      for (const id of ids.slice(1)) {
        const { status, body } = await daemon.call("DELETE", `${BASE}/${id}`);
        assert.equal(status, 200, JSON.stringify(body));
        fill(disk.path);
      }
      assert.equal(((await daemon.call("GET", BASE)).body as unknown as unknown[]).length, 1);

      const freed = await daemon.call("POST", "/v1/platform/disk/collect", { apply: true, deleted: true });
      assert.equal(freed.status, 200, JSON.stringify(freed.body));
      assert.ok(Number(freed.body["bytes"]) > 0, "deleted volumes can be given up for their room");
      rmSync(join(disk.path, "filler"));
      const again = await until("with room it goes on", async () => {
        const answer = await create(daemon, "again");
        return answer.status === 200 && answer;
      });
      await run("e2fsck", ["-f", "-n", join(data, "volumes/images/volumes", `${String(again.body["id"])}.img`)]);
      const { body } = await daemon.call("POST", "/v1/platform/disk/collect", {});
      assert.deepEqual(body["waste"], [], "what was refused left nothing");
      daemon.child.signal("SIGTERM");
      await daemon.child.ended;
    });

    test("acknowledged writes are there after a full disk", async (t) => {
      // Before the disk is asked for, since these run in order: what is on it goes before it does.
      t.after(async () => {
        await disk.remove(volume.id);
        await disk.close();
      });
      const host = new Ext4(t, POOL_MIB);
      const disk = new LoopDisk({ dir: join(host.path, "volumes"), pool: "plain" });
      const volume: DiskVolume = { id: "vol_full", size_gb: 1, fstype: "ext4", encryption: null, key: null };
      await disk.start();
      await disk.create(volume);
      const log = async (): Promise<string> => join((await disk.mount(volume)).dir, "log");
      // Enough that the journal has room for more on a full disk: then the first to find none is a block of the file.
      const before = append(await log(), JOURNAL, "before");
      assert.equal(before.length, JOURNAL);
      const makeRoom = fill(host.path);
      const full = append(await log(), 1000, "full");
      assert.ok(full.length < 1000, "the disk was full");
      makeRoom();
      const after = append(await log(), 300, "after");
      t.diagnostic(`${full.length} of 1,000 on the full disk and ${after.length} of 300 after it`);

      await disk.unmount(volume);
      const kept = new Set(readFileSync(await log(), "utf8").split("\n"));
      const lost = [...before, ...full, ...after].filter((line) => !kept.has(line));
      assert.deepEqual(lost, []);
      assert.equal(append(await log(), 300, "again").length, 300, "mounted again, it takes everything");
    });
  });
}
