import { existsSync } from "node:fs";
import { mkdir, open, rename, rm, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { canReflink } from "./images.ts";
import { mountAt } from "./mountinfo.ts";
import { exists, run } from "./programs.ts";

/** What kind of place volumes are kept in: `auto` makes a pool where the data dir cannot share blocks. */
export type PoolChoice = "auto" | "plain";

/** An XFS smaller than this cannot be made. */
const LEAST_BYTES = 1024 ** 3;

/**
 * A folder whose files can share blocks: the data dir itself where its file system can do that, else an XFS in
 * a sparse file that is as large as the disk. Copies of volumes then take no time and no room. Where neither is
 * possible the folder is a plain one, copies are real, and `reason` says why.
 */
export async function openPool(root: string, choice: PoolChoice): Promise<{ dir: string; reason: string }> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  const [file, dir, folder] = [join(root, "pool.xfs"), join(root, "pool"), join(root, "images")];
  // What is there is used, whatever would be chosen today: the volumes are in it.
  if (existsSync(file)) return await mounted(file, dir);
  if (existsSync(folder) || choice === "plain")
    return { dir: folder, reason: "the file system of the data dir cannot" };
  if (await canReflink(root)) return { dir: folder, reason: "" };
  const { bsize, blocks } = await statfs(root);
  if (bsize * blocks < LEAST_BYTES) return { dir: folder, reason: "the disk is too small for a pool" };
  if (!(await exists("mkfs.xfs"))) return { dir: folder, reason: "there is no mkfs.xfs (apt-get install xfsprogs)" };
  try {
    await makePool(file, bsize * blocks);
    return await mounted(file, dir);
  } catch (error) {
    await rm(file, { force: true });
    return { dir: folder, reason: messageOf(error) };
  }
}

/** Whether there is a place for volumes already. */
export const hasPool = (root: string): boolean =>
  existsSync(join(root, "pool.xfs")) || existsSync(join(root, "images"));

async function makePool(file: string, bytes: number): Promise<void> {
  const fresh = `${file}.new`;
  await rm(fresh, { force: true });
  {
    await using handle = await open(fresh, "w", 0o600);
    await handle.truncate(bytes);
  }
  await run("mkfs.xfs", ["-q", "-m", "reflink=1,crc=1", "-K", fresh]);
  await rename(fresh, file);
}

async function mounted(file: string, dir: string): Promise<{ dir: string; reason: string }> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  if (!(await mountAt(dir))) {
    // What is deleted in the pool gives its room back to the disk.
    await run("mount", ["-t", "xfs", "-o", "loop,discard,nosuid,nodev,noatime", file, dir]);
    await direct(dir);
  }
  return { dir: join(dir, "images"), reason: "" };
}

/** The loop device of a mount does not keep a second copy of everything in memory, where it can do without. */
export async function direct(point: string): Promise<void> {
  const mount = await mountAt(point);
  if (mount) await run("losetup", ["--direct-io=on", mount.source]).catch(() => {});
}

/** Taken away when nothing in it is in use; machines that go on running keep it. */
export async function closePool(root: string): Promise<void> {
  const dir = join(root, "pool");
  if (await mountAt(dir)) await run("umount", [dir]).catch(() => {});
  // Unmounts it in every other mount namespace, too: a copy there would keep the file system and its loop device.
  await rmdir(dir).catch(() => {});
}
