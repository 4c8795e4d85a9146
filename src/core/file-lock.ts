import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

const SQLITE_BUSY = 5;

/**
 * Locks a file for this process; undefined when another has it. It is a kernel lock, taken through SQLite, so it ends
 * with the process. Nothing else may open the file: closing it would release the lock.
 */
export function holdLock(file: string): { release(): void } | undefined {
  ownerOnly(file);
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return { release: () => lock.isOpen && lock.close() };
  } catch (cause) {
    lock.close();
    if ((cause as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw cause;
  }
}

/** Creates the file with mode 0600. SQLite gives the files beside a database the same mode. */
export function ownerOnly(file: string): void {
  closeSync(openSync(file, "a", 0o600));
  chmodSync(file, 0o600);
}
