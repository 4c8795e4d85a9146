import { DatabaseSync } from "node:sqlite";
import { ownerOnly } from "#core/file-lock.ts";

/**
 * NORMAL is faster but loses acknowledged writes at a power cut; OFF corrupts the file. Both exist for the tests that
 * show it (`test/system/store-powercut.test.ts`).
 */
export type Synchronous = "FULL" | "NORMAL" | "OFF";

export function openConnection(file: string, synchronous: Synchronous = "FULL"): DatabaseSync {
  if (file !== ":memory:") ownerOnly(file);
  const db = new DatabaseSync(file, { timeout: 10_000, enableForeignKeyConstraints: true });
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
  return db;
}
