/** Makes a node's directory, and gives what a node makes as root to those whose directory it is. */
import { accessSync, chownSync, constants, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "#core/assert.ts";

/** Fails with the reason when nothing can be written there. */
export function prepareDirectory(dir: string): void {
  try {
    make(dir);
    accessSync(dir, constants.W_OK);
  } catch (thrown) {
    throw new Error(
      `--dir ${dir} cannot be written to, and a node keeps its log there: ${messageOf(thrown)}; give it a directory on a disk that is mounted for writing`,
      { cause: thrown },
    );
  }
}

function make(dir: string): void {
  if (existsSync(dir)) return;
  make(dirname(dir));
  mkdirSync(dir);
  giveToOwner(dir, dir);
}

/**
 * A node that runs as root makes files for applications that do not: `file` gets the owner of the directory in which
 * `path` is, or will be.
 */
export function giveToOwner(file: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  if (uid !== 0 || gid !== 0) chownSync(file, uid, gid);
}
