/**
 * Finds processes that have a file locked, as far as this one can see them: SQLite does not report who has a file
 * open.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";

/** Other processes with a lock on the file. Every connection to a WAL database has one on NAME-shm. */
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

/** Other processes that have the deleted file at this path open, as far as visible. */
export function usersOfDeleted(path: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.filter((pid) => linksOf(pid).includes(`${path} (deleted)`)).map(Number);
}

function linksOf(pid: string): string[] {
  const dir = `/proc/${pid}/fd`;
  try {
    return readdirSync(dir).map((fd) => linkOf(`${dir}/${fd}`));
  } catch {
    return []; // It has exited, or is not accessible.
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
