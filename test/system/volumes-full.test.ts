/** Volumes on a full disk: refused in words, nothing half made, deleting works, and with room it goes on. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { run } from "#drivers/disk/programs.ts";
import { until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { Ext4 } from "./ext4.ts";
import { fill } from "./fill.ts";
import { ownMounts } from "./own-mounts.ts";

const BASE = "/v1/apps/web/volumes";
const VOLUMES = 4;

const create = (daemon: Daemon, name: string) =>
  daemon.call("POST", BASE, { name, size_gb: 1, encrypted: false, require_unique_zone: false });

if (await ownMounts(import.meta.filename)) {
  suite("volumes on a full disk", { skip: volumesMissing() }, () => {
    test("create and snapshot are refused, delete works with not a byte free (S3b)", async (t) => {
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
  });
}
