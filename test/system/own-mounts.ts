/**
 * File systems that a test mounts go away with it, however it ends: its mount namespace is its own, and the kernel takes
 * it down, loop devices included, with its last process.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { inside } from "./own-namespace.ts";

/** Why nothing can be mounted on this box, or undefined. */
export function mountsMissing(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "mounting a file system needs root on Linux";
  if (!existsSync("/dev/loop-control")) return "there are no loop devices here";
  if (spawnSync("mkfs.ext4", ["-V"]).status !== 0) return "there is no mkfs.ext4 (apt-get install e2fsprogs)";
  if (spawnSync("unshare", ["--mount", "true"]).status !== 0) return "mount namespaces cannot be made here";
  return undefined;
}

/** True when this process has mounts of its own and should run its tests. */
export async function ownMounts(file: string): Promise<boolean> {
  return mountsMissing() !== undefined || (await inside(["unshare", "--mount"], file));
}
