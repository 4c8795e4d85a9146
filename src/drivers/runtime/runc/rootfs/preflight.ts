/**
 * Checks an untrusted root file system before runc uses it. Container runtimes have been led outside of their root by
 * images whose /dev or /proc was a symbolic link, and by odd working directories; such images are refused.
 */
import type { GuestTree } from "../../../linux/guest-tree.ts";

/** runc mounts on these and creates nodes in /dev; each must be a directory or absent. */
const FOLDERS = ["/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/.svc"];
const NODES = [
  "null",
  "zero",
  "full",
  "random",
  "urandom",
  "tty",
  "console",
  "ptmx",
  "core",
  "fd",
  "stdin",
  "stdout",
  "stderr",
];
/** A config's files may not be below these. */
const KERNEL = /^\/(proc|sys|dev|\.svc)(\/|$)/;

export class ImageRefused extends Error {
  override readonly name = "ImageRefused";
}

export function preflight(tree: Pick<GuestTree, "kind" | "where">, folders: readonly string[], volume?: string): void {
  for (const path of FOLDERS) {
    const kind = tree.kind(path);
    if (kind !== undefined && kind !== "folder") refuse(`${path} is a ${kind} instead of a folder`);
  }
  for (const name of NODES) {
    const kind = tree.kind(`/dev/${name}`);
    if (kind === "link") refuse(`/dev/${name} is a link`);
  }
  for (const folder of folders) inside(tree, folder, "the working folder");
  if (volume !== undefined) inside(tree, volume, "the volume's folder");
}

function inside(tree: Pick<GuestTree, "where">, path: string, what: string): void {
  if (!path.startsWith("/")) refuse(`${what} "${path}" is not an absolute path`);
  // The resolved path counts, not the written one.
  for (const place of [normal(path), tree.where(path) ?? normal(path)]) {
    if (KERNEL.test(place)) refuse(`${what} "${path}" lies in ${place}, which is the kernel's`);
    if (place === "/" && what.startsWith("the volume")) refuse("a volume cannot be mounted at /");
  }
}

const normal = (path: string): string => new URL(`file://${path.replaceAll(/[?#%]/g, "_")}`).pathname;

function refuse(why: string): never {
  throw new ImageRefused(`the machine is not started: ${why}`);
}
