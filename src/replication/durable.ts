/** Atomic and durable file writes: a crash or a power cut leaves the old file or the new one. */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Writes a temporary file and renames it, so that readers see the old or the new one. */
export function replaceFile(path: string, parts: readonly (Uint8Array | string)[], durable: boolean): void {
  const fresh = `${path}.new`;
  const fd = openSync(fresh, "w", 0o644);
  try {
    for (const part of parts) writeAll(fd, Buffer.from(part as Uint8Array));
    if (durable) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(fresh, path);
  if (durable) syncDirectory(dirname(path));
}

/** Makes creations, renames and removals in a directory durable. */
export function syncDirectory(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** `at`: file offset; without it, at the current position. */
export function writeAll(fd: number, bytes: Buffer, at?: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(fd, bytes, done, bytes.length - done, at === undefined ? null : at + done);
  }
}

export function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/** Durable: a node must remember its term after a power cut. */
export function writeJson(path: string, value: unknown): void {
  replaceFile(path, [`${JSON.stringify(value, undefined, 2)}\n`], true);
}
