/** The thread of `CheckpointThread`: a connection for each piece of work, closed before it is said to be done. */
import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";

interface Work {
  path: string;
  word: Int32Array;
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

parentPort?.on("message", ({ path, word }: Work) => {
  try {
    copyBack(path);
  } catch {
    // Busy or closed: the caller checks the WAL itself.
  }
  // First the atomic: a blocked waiter does not receive messages.
  Atomics.store(word, 0, 0);
  Atomics.notify(word, 0);
  parentPort?.postMessage(path);
});
