/** Deletes large files in the background: memory snapshots that are no longer needed. */
import { existsSync, readdirSync, renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

const MARK = ".discarded-";
let count = 0;

/** Renames at once, deletes in the background. */
export function discard(dir: string): void {
  if (!existsSync(dir)) return;
  const aside = `${dir}${MARK}${process.pid}-${count++}`;
  renameSync(dir, aside);
  void remove(aside);
}

/** Deletes what an earlier process had set aside. */
export function discardRest(dir: string): void {
  const parent = dirname(dir);
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent))
    if (name.startsWith(`${basename(dir)}${MARK}`)) void remove(join(parent, name));
}

/** A failure is retried at our next start, or removed with the machine. */
async function remove(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => {});
}
