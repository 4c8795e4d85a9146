/** A thread that checks a database file, which takes seconds for a large one. It reports "ok", or the problem. */
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "#core/assert.ts";

function verdictOn(path: string): string {
  try {
    const db = new DatabaseSync(path);
    try {
      return String(db.prepare("PRAGMA quick_check").get()?.["quick_check"]);
    } finally {
      db.close();
    }
  } catch (error) {
    return messageOf(error);
  }
}

parentPort?.postMessage(verdictOn(String(workerData)));
