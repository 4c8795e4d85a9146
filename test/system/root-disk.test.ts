/** Root disks that are kept ready while the host's disk is full. */
import assert from "node:assert/strict";
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { detach } from "#drivers/linux/calls.ts";
import { RUNC_LIMITS } from "#drivers/runtime/runc/limits.ts";
import { RootDisks } from "#drivers/runtime/runc/rootfs/root-disk.ts";
import { tempDir, until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { Ext4 } from "./ext4.ts";
import { fill } from "./fill.ts";
import { ownMounts } from "./own-mounts.ts";

const SIZE = 64 * 1024 * 1024;

/** Disks of ours that are mounted at no place. */
const waiting = (): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => join("/proc/self/fd", fd))
    .filter((path) => existsSync(join(path, "lost+found")));

/** Makes folders until the disk's journal finds no room; from then on nothing can be made on it. */
function spoil(path: string): void {
  const root = openSync(path, "r");
  try {
    for (let n = 0; n < 1000; n++) {
      mkdirSync(join(path, `d${n}`));
      fsyncSync(root);
    }
    assert.fail("the disk can still be written to");
  } catch (error) {
    assert.match(String(error), /EROFS|EIO/);
  } finally {
    closeSync(root);
  }
}

if (await ownMounts(import.meta.filename)) {
  suite("pool of root disks", { skip: volumesMissing() }, () => {
    test("a machine never gets a root disk that a full disk has damaged", async (t) => {
      const host = new Ext4(t, 96);
      const disks = new RootDisks(join(host.path, "ready"), SIZE, systemClock);
      disks.open();
      t.after(() => disks.close());
      await until("disks are ready", () => waiting().length === RUNC_LIMITS.disks_ready);
      const makeRoom = fill(host.path);
      for (const path of waiting()) spoil(path);
      makeRoom();

      const target = join(tempDir(), "root");
      mkdirSync(target);
      await disks.mount(join(host.path, "root.ext4"), target);
      t.after(() => detach(target));
      writeFileSync(join(target, "file"), "x", { flush: true });
    });
  });
}
