import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** What the database asks of a file system besides reading: that what was promised is really there. */

/** The disk refused: full, or broken. Nothing of the write counts. */
export class StorageError extends Error {
  override readonly name = "StorageError";
  /** Full can pass; anything else needs someone to look. */
  readonly full: boolean;

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    this.full = cause instanceof StorageError ? cause.full : code === "ENOSPC" || code === "EDQUOT";
  }
}

/** A new, renamed or removed name lasts only once its folder was synced. */
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

/** What cannot be read is put aside under its own name, never deleted. */
export class Quarantine {
  readonly #dir: string;
  /** Files put aside since opening, with the reason. */
  readonly found: { file: string; reason: string }[] = [];

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** The file goes away from where it was. */
  move(path: string, reason: string): void {
    makeDir(this.#dir);
    renameSync(path, join(this.#dir, basename(path)));
    syncDir(this.#dir);
    this.found.push({ file: basename(path), reason });
  }

  /** The file stays in use as far as it is readable; a second name keeps the whole of it. */
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
