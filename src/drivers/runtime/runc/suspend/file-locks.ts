/**
 * POSIX locks of a machine's processes. CRIU opens and closes every mapped file when it restores a process, and closing
 * any descriptor of a file ends the process's locks on it. SQLite in WAL mode locks the file that it maps (`-shm`): without
 * the lock another process takes the database for unused, and cuts that file off under the first one.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface HeldLocks {
  any: boolean;
  /** A file whose locks a snapshot would lose. */
  lost: string | undefined;
}

/** `1: POSIX  ADVISORY  READ 1234 08:01:131073 128 128`. */
const HOLDER = /^\d+: POSIX +\S+ +\S+ +(\d+) /gm;
/** `lock:` and the same, in a descriptor's `fdinfo`. */
const HELD_HERE = /^lock:\s+\d+: POSIX /m;
/** `7f00-7f01 rw-s 00000000 00:31 42   /data/app.db-shm`; without an inode nothing of a file is mapped. */
const MAPPED = /^\S+ \S+ \S+ \S+ [1-9]\d* +(.+)$/gm;

export function heldLocks(pids: readonly number[]): HeldLocks {
  const holders = new Set(namesIn(readFileSync("/proc/locks", "utf8"), HOLDER));
  const found = pids.filter((pid) => holders.has(String(pid)));
  const lost = found.map(lockedAndMapped).find((path) => path !== undefined);
  return { any: found.length > 0, lost };
}

/** Compares paths: below an overlay the kernel names one inode for a lock and another for a mapping. */
function lockedAndMapped(pid: number): string | undefined {
  try {
    const mapped = new Set(namesIn(readFileSync(`/proc/${pid}/maps`, "utf8"), MAPPED));
    return readdirSync(`/proc/${pid}/fd`)
      .filter((fd) => HELD_HERE.test(readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8")))
      .map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`).replaceAll("\n", "\\012"))
      .find((path) => mapped.has(path));
  } catch (thrown) {
    // It has ended, or closed the descriptor.
    if (["ENOENT", "ESRCH"].includes((thrown as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw thrown;
  }
}

const namesIn = (text: string, pattern: RegExp): string[] =>
  Array.from(text.matchAll(pattern), ([, name = ""]) => name);
