import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** File system operations of the database besides reading: durable writes and quarantine. */

/** A write failed: the disk is full or broken. Nothing of the write counts. */
export class StorageError extends Error {
  override readonly name = "StorageError";
  /** A full disk may be temporary; any other error needs an operator. */
  readonly full: boolean;

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    this.full = cause instanceof StorageError ? cause.full : code === "ENOSPC" || code === "EDQUOT";
  }
}

/** A new, renamed or removed name is durable only once its directory is synced. */
export function syncDir(dir: string): void {
  const fd = openSync(dir, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function makeDir(dir: string): void {
  if (mkdirSync(dir, { recursive: true }) !== undefined) syncDir(dirname(dir));
}

export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

/** Moves unreadable files aside under their own names; they are never deleted. */
export class Quarantine {
  readonly #dir: string;
  /** Quarantined files since opening, with the reason. */
  readonly found: { file: string; reason: string }[] = [];

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Moves the file to quarantine. */
  move(path: string, reason: string): void {
    makeDir(this.#dir);
    renameSync(path, join(this.#dir, basename(path)));
    syncDir(this.#dir);
    this.found.push({ file: basename(path), reason });
  }

  /** Keeps the readable part of the file in use; a hard link in quarantine preserves the whole of it. */
  keep(path: string, reason: string): void {
    makeDir(this.#dir);
    try {
      linkSync(path, join(this.#dir, basename(path)));
      syncDir(this.#dir);
    } catch (thrown) {
      const known = thrown instanceof Error && "code" in thrown && thrown.code === "EEXIST";
      if (!known) throw thrown;
    }
    this.found.push({ file: basename(path), reason });
  }
}
