import { open } from "node:fs/promises";
import type { Usage } from "#volumes/types.ts";
import { run } from "./programs.ts";

/** Where the superblock is, and what of it we read: little-endian, from <linux/fs/ext4>. */
const SUPERBLOCK = 1024;
const MAGIC = 0xef53;

/**
 * Makes an empty file system. The inode tables of a sparse file are zeros already, so none are written, now or
 * later by the kernel; nothing is kept back for root, who is not the same inside a machine. The folder that
 * machines see is made with it: what is beside it (lost+found) is none of their business.
 */
export async function makeExt4(target: string, template: string, features: readonly string[] = []): Promise<void> {
  const extended = "assume_storage_prezeroed=1,nodiscard,root_owner=0:0";
  const more = features.flatMap((feature) => ["-O", feature]);
  await run("mkfs.ext4", ["-q", "-F", "-m", "0", "-E", extended, ...more, "-d", template, target]);
}

/** The file system's own count, read from the file it is in; undefined when there is none to be seen. */
export async function readExt4(file: string): Promise<(Usage & { bytes: number }) | undefined> {
  await using handle = await open(file, "r");
  const block = Buffer.alloc(1024);
  const { bytesRead } = await handle.read(block, 0, block.length, SUPERBLOCK);
  if (bytesRead < block.length || block.readUInt16LE(0x38) !== MAGIC) return undefined;
  const wide = (low: number, high: number): number => block.readUInt32LE(low) + block.readUInt32LE(high) * 2 ** 32;
  const block_size = 1024 << block.readUInt32LE(0x18);
  const total = wide(0x04, 0x150);
  const reserved = wide(0x08, 0x154);
  const free = wide(0x0c, 0x158);
  // What the file system needs for itself is not counted as room, as statfs does not.
  const overhead = block.readUInt32LE(0x248);
  return {
    bytes: total * block_size,
    blocks: total - overhead,
    block_size,
    blocks_free: free,
    blocks_avail: Math.max(0, free - reserved),
  };
}

/** Whether the program was refused a right, rather than failed. */
const REFUSED = /Permission denied|Operation not permitted/;

/** Fills the device it is mounted from. False where the kernel does not let us: some boxes keep that right back. */
export async function growMounted(device: string): Promise<boolean> {
  try {
    await run("resize2fs", [device]);
    return true;
  } catch (error) {
    if (error instanceof Error && REFUSED.test(error.message)) return false;
    throw error;
  }
}

/** Exit code 1: something was mended. The file's name is an argument, never part of the script. */
const MEND_AND_GROW = 'e2fsck -f -p "$1"; [ $? -le 1 ] && resize2fs "$1"';

/**
 * Fills the file or device it is in; not mounted. What a crash left is mended first. If we are killed meanwhile
 * it goes on and is finished, and the lock on the file lets nobody else in before that.
 */
export async function growUnmounted(target: string): Promise<void> {
  await run("flock", [target, "sh", "-c", MEND_AND_GROW, "sh", target]);
}

/** Waits for whoever is still at work on the file, begun by a process that is gone. */
export async function quiet(target: string): Promise<void> {
  await run("flock", [target, "true"]);
}
