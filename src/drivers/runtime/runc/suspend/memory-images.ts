/**
 * The directory in which CRIU writes and reads the memory images of a machine. Plain files exist only while it writes
 * them: on tmpfs, in the run dir. When they do not fit there, they are on disk, closed to all but root, and
 * bind-mounted at the same path. For a restore an image server is mounted there.
 */
import { mkdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { bind, detach } from "../../../linux/calls.ts";
import type { MachinePaths } from "../layout.ts";
import { mountsUnder } from "../rootfs/bundle-builder.ts";

/** Creates an empty working directory for CRIU; `bytes` is its maximum content. */
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

/** The machine itself needs as much again meanwhile. */
function fitsInMemory(dir: string, bytes: number): boolean {
  const { bavail, bsize } = statfsSync(dir);
  return bytes * 1.1 < bavail * bsize && bytes * 2 < kibibytes("/proc/meminfo", "MemAvailable");
}

/** Memory and swap of a process tree in bytes: an upper bound of its images. */
export function memoryOfProcesses(pids: readonly number[]): number {
  const sizes = pids.map(
    (pid) => kibibytes(`/proc/${pid}/status`, "VmRSS") + kibibytes(`/proc/${pid}/status`, "VmSwap"),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Reads a line such as `VmRSS: 12 kB` in bytes; 0 when it or its process is missing. */
function kibibytes(file: string, name: string): number {
  try {
    const line = readFileSync(file, "utf8").match(new RegExp(`^${name}:\\s+(\\d+) kB`, "m"));
    return Number(line?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
