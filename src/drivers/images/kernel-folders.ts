/**
 * /dev, /proc and /sys: a machine mounts its own there, so what an image brings below them could never be seen. Root
 * file systems made by debootstrap have device nodes and links such as /dev/fd, which lead a container runtime astray.
 */
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const KERNEL_FOLDERS = ["/dev", "/proc", "/sys"] as const;

/** Whether a path is one of the directories. Paths begin at the root of the image. */
export const isKernelFolder = (path: string): boolean => (KERNEL_FOLDERS as readonly string[]).includes(path);

/** Whether a path is one of the directories or below one. */
export const isKernelPath = (path: string): boolean =>
  KERNEL_FOLDERS.some((folder) => path === folder || path.startsWith(`${folder}/`));

/** Empties them in a layer unpacked by an earlier version, which did not skip their content. */
export function emptyKernelFolders(layer: string): void {
  for (const folder of KERNEL_FOLDERS) {
    const path = join(layer, folder);
    const found = lstatSync(path, { throwIfNoEntry: false });
    const inside = found?.isDirectory() ? readdirSync(path).map((name) => join(path, name)) : [path];
    for (const one of inside) rmSync(one, { recursive: true, force: true });
  }
}
