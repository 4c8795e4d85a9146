import { DatabaseSync } from "node:sqlite";
import { ownerOnly } from "#core/file-lock.ts";

/**
 * NORMAL would be faster and loses acknowledged writes at a power cut, every time; OFF breaks the file. Both
 * are kept for the tests that show it (`test/system/store-powercut.test.ts`).
 */
export type Synchronous = "FULL" | "NORMAL" | "OFF";

export function openConnection(file: string, synchronous: Synchronous = "FULL"): DatabaseSync {
  if (file !== ":memory:") ownerOnly(file);
  const db = new DatabaseSync(file, { timeout: 10_000, enableForeignKeyConstraints: true });
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
  return db;
}
