/** Real volumes: loop devices, ext4, every way to encrypt that this box has, with and without shared blocks. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { LoopDisk } from "#drivers/disk/loop.ts";
import { run } from "#drivers/disk/programs.ts";
import { type DiskRig, diskSuite } from "#volumes/disk.suite.ts";
import type { DiskVolume } from "#volumes/disk.ts";
import { tempDir } from "../support.ts";
import { encryptionMissing, volumesMissing } from "../volumes.ts";
import { ownMounts } from "./own-mounts.ts";

async function openLoop(t: TestContext, pool: "auto" | "plain"): Promise<DiskRig> {
  const dir = tempDir("hangar-volumes");
  const start = async (): Promise<LoopDisk> => {
    const disk = new LoopDisk({ dir, pool });
    await disk.start();
    return disk;
  };
  const disk = await start();
  t.after(async () => {
    for (const id of (await disk.inventory()).volumes.keys()) await disk.remove(id);
    await disk.close();
  });
  const path = async (volume: DiskVolume, name: string): Promise<string> => join((await disk.mount(volume)).dir, name);
  return {
    disk,
    again: start,
    async write(volume, name, bytes) {
      const file = await path(volume, name);
      await writeFile(file, bytes);
      await run("sync", ["--file-system", file]);
    },
    read: async (volume, name) => await readFile(await path(volume, name)),
  };
}

if (await ownMounts(import.meta.filename)) {
  diskSuite("loop, shared blocks", { encryption: null, skip: volumesMissing(), open: (t) => openLoop(t, "auto") });
  diskSuite("loop, copies", { encryption: null, skip: volumesMissing(), open: (t) => openLoop(t, "plain") });
  for (const encryption of ["dm-crypt", "fscrypt", "gocryptfs"] as const) {
    const skip = volumesMissing() ?? encryptionMissing(encryption);
    diskSuite(`loop, ${encryption}`, { encryption, skip, open: (t) => openLoop(t, "plain") });
  }
}
