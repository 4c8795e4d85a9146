/**
 * The plain memory images of a machine, there only while CRIU writes or reads them: in memory, in the run dir. Where that
 * has no room for them they are on the disk, closed to all but root, and shown at the same place.
 */
import { mkdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { bind, detach } from "../../../linux/calls.ts";
import type { MachinePaths } from "../layout.ts";
import { mountsUnder } from "../rootfs/bundle-builder.ts";

/** Makes the folder that CRIU works in, empty; `bytes` is what it will hold at most. */
export function openImages(paths: MachinePaths, bytes: number): void {
  clearImages(paths);
  mkdirSync(paths.images, { mode: 0o700 });
  if (fitsInMemory(join(paths.images, ".."), bytes)) return;
  mkdirSync(paths.unsealed, { mode: 0o700 });
  bind(paths.unsealed, paths.images, {});
}

export function clearImages(paths: MachinePaths): void {
  if (mountsUnder(join(paths.images, "..")).has(paths.images)) detach(paths.images);
  for (const dir of [paths.images, paths.unsealed]) rmSync(dir, { recursive: true, force: true });
}

/** The machine itself takes as much again while it is written down or made to go on. */
function fitsInMemory(dir: string, bytes: number): boolean {
  const { bavail, bsize } = statfsSync(dir);
  return bytes * 1.1 < bavail * bsize && bytes * 2 < kibibytes("/proc/meminfo", "MemAvailable");
}

/** What a tree of processes has in memory and swap, in bytes: as much as its images take, or less. */
export function memoryOfProcesses(pids: readonly number[]): number {
  const sizes = pids.map(
    (pid) => kibibytes(`/proc/${pid}/status`, "VmRSS") + kibibytes(`/proc/${pid}/status`, "VmSwap"),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** A line such as `VmRSS: 12 kB`, in bytes; 0 when it is not there, or its process is not any more. */
function kibibytes(file: string, name: string): number {
  try {
    const line = readFileSync(file, "utf8").match(new RegExp(`^${name}:\\s+(\\d+) kB`, "m"));
    return Number(line?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
