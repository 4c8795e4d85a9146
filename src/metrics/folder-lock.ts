import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { ApiError } from "#core/errors.ts";
import { holdLock } from "#core/file-lock.ts";
import { makeDir } from "./tsdb/files.ts";

// Names with a dot, which no organization's folder has.
const LOCK = "engine.lock";
const PID = "engine.pid";

/**
 * Takes the folder of all metrics for this process alone. Two that write one log would each take the other's records
 * for damage; so the second is refused at once, in words.
 */
export function holdFolder(dir: string): { release(): void } {
  makeDir(dir);
  const pid = join(dir, PID);
  const lock = lockOf(dir);
  if (!lock) {
    const holder = existsSync(pid) ? readFileSync(pid, "utf8").trim() : "unknown";
    throw unusable(dir, `another process (pid ${holder}) is using it; stop that one, or choose another folder`);
  }
  // Only for the words above: whose pid it is after a crash does not matter, the lock does.
  writeFileSync(pid, `${process.pid}\n`);
  return lock;
}

function lockOf(dir: string): ReturnType<typeof holdLock> {
  try {
    return holdLock(join(dir, LOCK));
  } catch (cause) {
    throw unusable(dir, `it cannot be locked: ${messageOf(cause)}`, cause);
  }
}

const unusable = (dir: string, why: string, cause?: unknown): ApiError =>
  new ApiError("storage_failed", `the metrics folder ${dir} cannot be used: ${why}`, { cause });
