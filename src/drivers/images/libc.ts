/** The three calls that Node does not have and a layer needs. */
import { closeSync, openSync } from "node:fs";
import { createRequire } from "node:module";
import { CallError } from "../linux/calls.ts";

interface Koffi {
  load(library: string): { func(prototype: string): (...args: unknown[]) => number };
  errno(): number;
}

interface Libc {
  koffi: Koffi;
  mknod(path: Buffer, mode: number, device: bigint): number;
  lsetxattr(path: Buffer, name: string, value: Buffer, bytes: number, flags: number): number;
  syncfs(fd: number): number;
}

let loaded: Libc | undefined;

/** Loaded on first use: a platform that unpacks nothing runs without it. */
function libc(): Libc {
  if (loaded) return loaded;
  const koffi = createRequire(import.meta.url)(`@koromix/koffi-linux-${process.arch}`) as Koffi;
  const library = koffi.load("libc.so.6");
  loaded = {
    koffi,
    mknod: library.func("int mknod(const void *path, unsigned int mode, unsigned long device)"),
    lsetxattr: library.func(
      "int lsetxattr(const void *path, const char *name, const void *value, size_t bytes, int flags)",
    ),
    syncfs: library.func("int syncfs(int fd)"),
  };
  return loaded;
}

/** Paths are passed as zero-terminated bytes, because names in images need not be UTF-8. */
const ended = (path: Buffer): Buffer => Buffer.concat([path, Buffer.of(0)]);

function check(result: number, call: string, path: Buffer | string): void {
  if (result < 0) throw new CallError(call, String(path), libc().koffi.errno());
}

const S_IFCHR = 0o020000;
const S_IFIFO = 0o010000;

/** Creates an overlayfs whiteout: a character device 0/0. */
export const makeWhiteout = (path: Buffer): void => check(libc().mknod(ended(path), S_IFCHR, 0n), "mknod", path);

export const makeFifo = (path: Buffer, mode: number): void =>
  check(libc().mknod(ended(path), S_IFIFO | (mode & 0o777), 0n), "mkfifo", path);

/** Marks a directory as opaque for overlayfs. */
export const makeOpaque = (path: Buffer): void =>
  check(libc().lsetxattr(ended(path), "trusted.overlay.opaque", Buffer.from("y"), 1, 0), "setxattr", path);

/** Syncs the file system of `path`: one call for a whole tree. */
export function syncFileSystem(path: string): void {
  const fd = openSync(path, "r");
  try {
    check(libc().syncfs(fd), "syncfs", path);
  } finally {
    closeSync(fd);
  }
}
