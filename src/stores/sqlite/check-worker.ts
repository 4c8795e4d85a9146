/** Worker thread that checks a database file, read-only. */
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { assert, messageOf } from "#core/assert.ts";
import { count } from "#core/words.ts";
import { countInside, countOutside } from "./commit-count.ts";

/** Problems: first missing commits, then corrupt pages. */
export interface CheckResult {
  at: "commits" | "pages";
  problem?: string;
}

/** Reported problems; one damaged page causes many. */
const MOST_REPORTED = 3;

/** Closed without a checkpoint, because it must not write: the WAL stays for recovery. */
function checkFile(file: string, onResult: (result: CheckResult) => void): void {
  const outside = countOutside(file) ?? 0;
  const db = new DatabaseSync(file, { readOnly: true, timeout: 10_000 });
  try {
    const inside = countInside(db);
    if (inside < outside) {
      const missing = count(outside - inside, "transaction");
      onResult({
        at: "commits",
        problem: `the last ${missing} that were acknowledged are not in it (its log does not add up)`,
      });
      return;
    }
    onResult({ at: "commits" });
    // Not `quick_check`, which does not compare indexes with rows.
    const found = db
      .prepare(`PRAGMA integrity_check(${MOST_REPORTED})`)
      .all()
      .map((row) => String(row["integrity_check"]));
    if (found.length === 1 && found[0] === "ok") onResult({ at: "pages" });
    else onResult({ at: "pages", problem: found.join("; ").replaceAll("\n", " ") });
  } finally {
    db.close();
  }
}

assert(parentPort, "the check runs in a worker thread");
const port = parentPort;
try {
  checkFile(workerData as string, (looked) => port.postMessage(looked));
} catch (thrown) {
  port.postMessage({ at: "pages", problem: messageOf(thrown) } satisfies CheckResult);
}
