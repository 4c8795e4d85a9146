/**
 * A mount namespace that is made while a volume is mounted, by a machine that is being started or by anybody else, has
 * the volume's file system too, and keeps it alive after we have unmounted it. Nothing may be lost or broken by that.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { takeDownVolumes } from "#drivers/disk/down.ts";
import { LoopDisk } from "#drivers/disk/loop.ts";
import { mounts } from "#drivers/disk/mountinfo.ts";
import { deviceOf } from "#drivers/linux/loop.ts";
import type { DiskVolume } from "#volumes/disk.ts";
import { tempDir } from "../support.ts";
import { encryptionMissing, traces, volumesMissing } from "../volumes.ts";
import { ownMounts } from "./own-mounts.ts";

/** Takes a copy of all current mounts, and returns the function that releases it. */
async function pin(t: TestContext): Promise<() => Promise<void>> {
  const holder = spawn("unshare", ["--mount", "--propagation", "private", "cat"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => holder.kill("SIGKILL"));
  // It echoes once it is inside.
  holder.stdin.write("in\n");
  await once(holder.stdout, "data");
  const namespace = (pid: number | "self"): string => readlinkSync(`/proc/${pid}/ns/mnt`);
  assert.notEqual(namespace(holder.pid ?? 0), namespace("self"));
  return async () => {
    const ended = once(holder, "exit");
    holder.stdin.end();
    await ended;
  };
}

const whole = (file: string): string => execFileSync("e2fsck", ["-f", "-n", file], { encoding: "utf8", stdio: "pipe" });

const volume = (id: string, size_gb = 1): DiskVolume => ({
  id,
  size_gb,
  fstype: "ext4",
  encryption: null,
  key: null,
});

async function opened(t: TestContext, pool: "auto" | "plain" = "plain") {
  const dir = tempDir("hangar-pinned");
  const disk = new LoopDisk({ dir, pool });
  await disk.start();
  t.after(async () => {
    const again = new LoopDisk({ dir, pool });
    for (const id of (await again.inventory()).volumes.keys()) await again.remove(id);
    await again.close();
  });
  return { disk, dir, image: (id: string) => join(dir, "images", "volumes", `${id}.img`) };
}

if (await ownMounts(import.meta.filename)) {
  suite("file system that another process still has mounted", { skip: volumesMissing() }, () => {
    test("an unmounted volume can be mounted again and stays intact (V6)", async (t) => {
      const { disk, image } = await opened(t);
      const v = volume("vol_again");
      await disk.create(v);
      writeFileSync(join((await disk.mount(v)).dir, "first"), "1");
      assert.notEqual(deviceOf(image(v.id)), undefined);
      await pin(t);
      await disk.unmount(v);
      assert.equal(deviceOf(image(v.id)), undefined, "nobody has it any more");
      const { dir } = await disk.mount(v);
      for (let i = 0; i < 200; i++) writeFileSync(join(dir, `file-${i}`), "x".repeat(10_000));
      assert.equal(readFileSync(join(dir, "first"), "utf8"), "1");
      await disk.unmount(v);
      whole(image(v.id));
    });

    test("a copy has everything written before the unmount (V6)", async (t) => {
      const { disk } = await opened(t);
      const [from, to] = [volume("vol_from"), volume("vol_to")];
      await disk.create(from);
      writeFileSync(join((await disk.mount(from)).dir, "late"), "not on the disk yet");
      await pin(t);
      await disk.unmount(from);
      await disk.fork(from, to);
      assert.equal(readFileSync(join((await disk.mount(to)).dir, "late"), "utf8"), "not on the disk yet");
    });

    test("an unmounted volume grows and stays intact (V6)", async (t) => {
      const { disk, image } = await opened(t);
      await disk.create(volume("vol_grow"));
      writeFileSync(join((await disk.mount(volume("vol_grow"))).dir, "kept"), "1");
      await pin(t);
      await disk.unmount(volume("vol_grow"));
      const larger = volume("vol_grow", 2);
      assert.equal(await disk.grow(larger), "grown");
      assert.equal(readFileSync(join((await disk.mount(larger)).dir, "kept"), "utf8"), "1");
      const usage = await disk.usage(larger);
      assert.ok(usage && usage.blocks * usage.block_size > 1.5 * 1024 ** 3, JSON.stringify(usage));
      await disk.unmount(larger);
      whole(image("vol_grow"));
    });

    for (const method of ["dm-crypt", "fscrypt", "gocryptfs"] as const)
      test(`taking the installation down closes and locks the volume: ${method}`, {
        skip: encryptionMissing(method),
      }, async (t) => {
        const { disk, dir, image } = await opened(t, "auto");
        const v = { ...volume("vol_locked"), encryption: method, key: randomBytes(64) };
        try {
          await disk.create(v);
        } catch (thrown) {
          return t.skip(`${method} does not work here: ${String(thrown)}`);
        }
        writeFileSync(join((await disk.mount(v)).dir, "secret"), "1");
        await pin(t);
        assert.equal(await takeDownVolumes(dir), 1);
        assert.deepEqual(
          (await mounts()).filter(({ point }) => point.startsWith(`${dir}/`)),
          [],
        );
        assert.equal(deviceOf(image(v.id)), undefined, "a copy of all mounts does not keep it");
        assert.equal(existsSync(`/dev/mapper/hangar-${v.id}`), false);
        assert.deepEqual(traces(dir).loops, []);
        const next = new LoopDisk({ dir });
        assert.equal(readFileSync(join((await next.mount(v)).dir, "secret"), "utf8"), "1", "and it opens again");
        await next.remove(v.id);
        await next.close();
      });

    test("control: without removing the mount point the file system stays alive (V6)", async (t) => {
      const { disk, image } = await opened(t);
      const v = volume("vol_control");
      await disk.create(v);
      const { dir } = await disk.mount(v);
      const release = await pin(t);
      execFileSync("umount", [join(dir, "..")]);
      assert.notEqual(deviceOf(image(v.id)), undefined);
      await release();
    });
  });
}
