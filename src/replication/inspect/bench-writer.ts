/** The application of `hangar db bench`, in a thread of its own: a commit waits inside SQLite, and samples go on meanwhile. */
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

export interface BenchWriting {
  path: string;
  seconds: number;
  synchronous: "FULL" | "NORMAL";
}

export interface BenchWritten {
  took_ms: number;
  commit_ms: number[];
}

const BUSY_TIMEOUT_MS = 10_000;

function write(db: DatabaseSync, seconds: number): BenchWritten {
  const insert = db.prepare("INSERT INTO bench (pad) VALUES (?)");
  const pad = "x".repeat(200);
  const commit_ms: number[] = [];
  const began_ms = performance.now();
  let now_ms = began_ms;
  while (now_ms < began_ms + seconds * 1000) {
    insert.run(pad);
    const after_ms = performance.now();
    commit_ms.push(after_ms - now_ms);
    now_ms = after_ms;
  }
  return { took_ms: now_ms - began_ms, commit_ms };
}

if (parentPort) {
  const { path, seconds, synchronous } = workerData as BenchWriting;
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
    db.exec("CREATE TABLE bench (n INTEGER PRIMARY KEY, pad TEXT)");
    parentPort.postMessage("ready");
    await once(parentPort, "message");
    parentPort.postMessage(write(db, seconds));
  } finally {
    db.close();
    parentPort.close();
  }
}
