import { existsSync } from "node:fs";
import { mkdir, open, rename, rm, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { canReflink } from "./images.ts";
import { mountAt } from "./mountinfo.ts";
import { exists, run } from "./programs.ts";

/** Where volumes are stored: `auto` creates a pool where the data dir does not support reflinks. */
export type PoolChoice = "auto" | "plain";

/** Minimum size of an XFS. */
const LEAST_BYTES = 1024 ** 3;

/**
 * A directory with reflink support: the data dir itself where its file system has it, else an XFS in a sparse file as
 * large as the disk. Copies of volumes then take no time and no space. Where neither is possible copies are full, and
 * `reason` says why.
 */
export async function openPool(root: string, choice: PoolChoice): Promise<{ dir: string; reason: string }> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  const [file, dir, folder] = [join(root, "pool.xfs"), join(root, "pool"), join(root, "images")];
  // An existing pool is used, whatever would be chosen today, because the volumes are in it.
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

/** Whether a volume store exists. */
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
    // `discard` returns deleted blocks to the disk.
    await run("mount", ["-t", "xfs", "-o", "loop,discard,nosuid,nodev,noatime", file, dir]);
    await direct(dir);
  }
  return { dir: join(dir, "images"), reason: "" };
}

/** Enables direct I/O on the loop device where possible, so that pages are not cached twice. */
export async function direct(point: string): Promise<void> {
  const mount = await mountAt(point);
  if (mount) await run("losetup", ["--direct-io=on", mount.source]).catch(() => {});
}

/** Unmounts the pool if nothing in it is in use; running machines keep it. */
export async function closePool(root: string): Promise<void> {
  const dir = join(root, "pool");
  if (await mountAt(dir)) await run("umount", [dir]).catch(() => {});
  // Also unmounts it in other mount namespaces, whose copies would keep the file system and its loop device.
  await rmdir(dir).catch(() => {});
}
