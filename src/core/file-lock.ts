import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

const SQLITE_BUSY = 5;

/**
 * Takes a file for this process alone; undefined when another has it. The lock is the kernel's, held through SQLite, so
 * it ends with the process however that ends. Nobody else may open the file: closing it would give the lock away.
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

/** The file is there, and for its owner alone. SQLite gives the files beside a database the same mode. */
export function ownerOnly(file: string): void {
  closeSync(openSync(file, "a", 0o600));
  chmodSync(file, 0o600);
}
