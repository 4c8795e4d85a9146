/**
 * The thread of `CheckpointThread`: opens a connection for each checkpoint, and closes it before it reports the end.
 */
import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";

interface Work {
  path: string;
  flag: Int32Array;
}

function copyBack(path: string): void {
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    db.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL");
    db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
  } finally {
    db.close();
  }
}

parentPort?.on("message", ({ path, flag }: Work) => {
  try {
    copyBack(path);
  } catch {
    // Busy or closed: the caller checks the WAL itself.
  }
  // First the atomic: a blocked waiter does not receive messages.
  Atomics.store(flag, 0, 0);
  Atomics.notify(flag, 0);
  parentPort?.postMessage(path);
});
