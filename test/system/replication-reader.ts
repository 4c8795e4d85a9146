/**
 * A reader that believes nothing: `replication-reader.ts PATH SECONDS MODE`. Checks again and again that what it sees is a
 * state the writer has committed, longer than told where that is not often enough. Modes: stay, reopen, slow, cli. Prints
 * what it found as JSON.
 */
import { spawnSync } from "node:child_process";
import { DatabaseSync } from "node:sqlite";

const [path = "", seconds = "1", mode = "stay"] = process.argv.slice(2);
const until = performance.now() + Number(seconds) * 1000;
/** On a slow box so many take longer than the time there is. */
const CHECKS = 5;
const nap = new Int32Array(new SharedArrayBuffer(4));
const sleep = (ms: number): void => {
  Atomics.wait(nap, 0, 0, ms);
};
const found = { mode, checks: 0, newer: 0, bad: [] as string[], back: 0, errors: {} as Record<string, number> };
let last = -1;
let stopping = false;
process.on("SIGTERM", () => {
  stopping = true;
});
const FACTS = `SELECT (SELECT sum(balance) FROM account) AS sum, n, low, (SELECT count(*) FROM entry) AS entries,
  (SELECT max(n) FROM entry) AS top FROM counter`;

type Row = Record<string, unknown> | undefined;

/** What one read transaction sees. */
function seen(db: DatabaseSync): [facts: Row, integrity: unknown, again: Row] {
  db.exec("BEGIN");
  const facts = db.prepare(FACTS).get();
  if (mode === "slow") sleep(200);
  const integrity = db.prepare("PRAGMA integrity_check").get()?.["integrity_check"];
  const again = db.prepare("SELECT n FROM counter").get();
  db.exec("COMMIT");
  return [facts, integrity, again];
}

/** The same by a process of its own, with the SQLite of this box. */
function seenByCli(): [facts: Row, integrity: unknown, again: Row] {
  const script = `.timeout 2000\nBEGIN; ${FACTS}; PRAGMA integrity_check; SELECT n FROM counter; COMMIT;`;
  const { stdout, stderr } = spawnSync("sqlite3", ["-readonly", "-json", path], { input: script, encoding: "utf8" });
  const [facts, integrity, again] = stdout.split(/(?<=\])\n/).map((part) => (part ? JSON.parse(part)[0] : undefined));
  if (stderr !== "" || again === undefined) throw new Error(`sqlite3: ${stderr}`);
  return [facts, integrity["integrity_check"], again];
}

function check(look: () => [facts: Row, integrity: unknown, again: Row]): void {
  const [facts, integrity, again] = look();
  const n = Number(facts?.["n"]);
  const low = Number(facts?.["low"]);
  const good =
    integrity === "ok" &&
    again?.["n"] === n &&
    facts?.["sum"] === 200_000 &&
    (n === 0 || (facts["top"] === n && facts["entries"] === n - low + 1));
  if (!good) found.bad.push(JSON.stringify({ facts, again, integrity }));
  found.checks++;
  if (n < last) found.back++;
  if (n > last) found.newer++;
  last = n;
}

function isOver(): boolean {
  if (stopping || found.bad.length >= 5) return true;
  return performance.now() >= until && (found.checks >= CHECKS || Object.keys(found.errors).length > 0);
}

let db: DatabaseSync | undefined;
while (!isOver()) {
  try {
    if (mode !== "cli") db ??= new DatabaseSync(path, { readOnly: true, timeout: 2000 });
    const open = db;
    check(open ? () => seen(open) : seenByCli);
    if (mode === "reopen" && found.checks % 3 === 0) {
      db?.close();
      db = undefined;
    }
  } catch (error) {
    const message = String(error instanceof Error ? error.message : error).slice(0, 80);
    found.errors[message] = (found.errors[message] ?? 0) + 1;
    db?.close();
    db = undefined;
  }
  sleep(3);
  // Lets a signal be heard.
  await new Promise<void>((done) => {
    setImmediate(done);
  });
}
process.stdout.write(`${JSON.stringify({ ...found, last })}\n`);
