import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { ApiError } from "#core/errors.ts";
import { holdLock } from "#core/file-lock.ts";
import { makeDir } from "./tsdb/files.ts";

// Names with a dot, which no organization's directory has.
const LOCK = "engine.lock";
const PID = "engine.pid";

/**
 * Locks the metrics directory for this process. Two writers of one WAL would take each other's records for damage, so
 * the second is refused.
 */
export function holdFolder(dir: string): { release(): void } {
  makeDir(dir);
  const pid = join(dir, PID);
  const lock = lockOf(dir);
  if (!lock) {
    const holder = existsSync(pid) ? readFileSync(pid, "utf8").trim() : "unknown";
    throw unusable(dir, `another process (pid ${holder}) is using it; stop that one, or choose another folder`);
  }
  // Only for the message: the lock decides, not the pid.
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
