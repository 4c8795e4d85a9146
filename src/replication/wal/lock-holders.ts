/** Which processes have a file locked, as far as this one can see them: SQLite has no word for "somebody has it open". */
import { readFileSync, statSync } from "node:fs";

/** Processes other than this one with a lock on the file. Every connection to a database with a WAL has one on NAME-shm. */
export function lockHolders(path: string): number[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return [];
  // 7: POSIX  ADVISORY  READ 1234 08:01:5678 128 128
  const lines = readFileSync("/proc/locks", "utf8").split("\n");
  const pids = lines
    .map((line) => line.split(/\s+/))
    .filter(([, , , , , place]) => place?.split(":").at(2) === String(stat.ino))
    .map(([, , , , pid]) => Number(pid));
  return [...new Set(pids)].filter((pid) => pid > 0 && pid !== process.pid);
}
