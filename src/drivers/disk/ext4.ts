import { open } from "node:fs/promises";
import type { Usage } from "#volumes/types.ts";
import { run } from "./programs.ts";

/** Position of the superblock; its fields are little-endian, as in <linux/fs/ext4>. */
const SUPERBLOCK = 1024;
const MAGIC = 0xef53;

/**
 * Creates an empty ext4. Inode tables of a sparse file are zeros already, so none are written; nothing is reserved for
 * root, who differs inside a machine. The directory that machines see is created in it, so that they do not see
 * lost+found.
 */
export async function makeExt4(target: string, template: string, features: readonly string[] = []): Promise<void> {
  const extended = "assume_storage_prezeroed=1,nodiscard,root_owner=0:0";
  const more = features.flatMap((feature) => ["-O", feature]);
  await run("mkfs.ext4", ["-q", "-F", "-m", "0", "-E", extended, ...more, "-d", template, target]);
}

/** Reads block counts from the superblock in the file; undefined when there is no file system. */
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
  // Metadata overhead is not counted as space, as in statfs.
  const overhead = block.readUInt32LE(0x248);
  return {
    bytes: total * block_size,
    blocks: total - overhead,
    block_size,
    blocks_free: free,
    blocks_avail: Math.max(0, free - reserved),
  };
}

/** Whether the program lacked a permission, rather than failed. */
const REFUSED = /Permission denied|Operation not permitted/;

/** Grows a mounted file system to its device. Returns false where the kernel does not permit it. */
export async function growMounted(device: string): Promise<boolean> {
  try {
    await run("resize2fs", [device]);
    return true;
  } catch (error) {
    if (error instanceof Error && REFUSED.test(error.message)) return false;
    throw error;
  }
}

/** Exit code 1: errors were corrected. The file name is an argument, never part of the script. */
const MEND_AND_GROW = 'e2fsck -f -p "$1"; [ $? -le 1 ] && resize2fs "$1"';

/**
 * Checks and grows an unmounted file system. If we are killed meanwhile the program continues, and its lock on the file
 * keeps others out.
 */
export async function growUnmounted(target: string): Promise<void> {
  await run("flock", [target, "sh", "-c", MEND_AND_GROW, "sh", target]);
}

/** Waits for a program on the file that an earlier process started. */
export async function quiet(target: string): Promise<void> {
  await run("flock", [target, "true"]);
}
