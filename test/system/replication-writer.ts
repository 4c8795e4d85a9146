/**
 * An application that writes: `replication-writer.ts PATH SECONDS [RATE] [FLAGS]`. Each transaction moves money between
 * accounts, adds an entry and counts; flags: vacuum and schema (after the first transaction, and now and then), full,
 * times. Prints how many transactions it has committed, with `times` also when each COMMIT began and ended.
 */
import { DatabaseSync } from "node:sqlite";

const [path = "", seconds = "1", rate = "0", flags = ""] = process.argv.slice(2);
const page_size = Number(process.env["PAGE_SIZE"] ?? 4096);
const db = new DatabaseSync(path, { timeout: 20_000 });
db.exec(`PRAGMA page_size = ${page_size}; PRAGMA journal_mode = WAL`);
db.exec(`PRAGMA synchronous = ${flags.includes("full") ? "FULL" : "NORMAL"}`);
db.exec("CREATE TABLE IF NOT EXISTS account(id INTEGER PRIMARY KEY, balance INT)");
db.exec("CREATE TABLE IF NOT EXISTS entry(n INTEGER PRIMARY KEY, pad TEXT)");
db.exec("CREATE TABLE IF NOT EXISTS counter(id INTEGER PRIMARY KEY CHECK (id = 1), n INT, low INT)");
if (!db.prepare("SELECT 1 FROM counter").get()) {
  db.exec(`BEGIN; INSERT INTO counter VALUES (1, 0, 1);
    WITH RECURSIVE s(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM s WHERE v < 200) INSERT INTO account SELECT v, 1000 FROM s;
    COMMIT`);
}
const move = db.prepare("UPDATE account SET balance = balance + ? WHERE id = ?");
const insert = db.prepare("INSERT INTO entry VALUES (?, ?)");
const count = db.prepare("UPDATE counter SET n = ?, low = ?");
const forget = db.prepare("DELETE FROM entry WHERE n < ?");
const start = db.prepare("SELECT n, low FROM counter").get();
let n = Number(start?.["n"]);
let low = Number(start?.["low"]);
const first = n;
const began = performance.now();
const until = began + Number(seconds) * 1000;
let extra = 0;
const nap = new Int32Array(new SharedArrayBuffer(4));
let acknowledged = 0;
const [began_ms, committed_ms]: [number[], number[]] = [[], []];
const now_ms = (): number => performance.timeOrigin + performance.now();

function transaction(): void {
  n++;
  db.exec("BEGIN IMMEDIATE");
  move.run(-(n % 97), 1 + ((n * 7919) % 200));
  move.run(n % 97, 1 + ((n * 104_729) % 200));
  insert.run(n, "x".repeat(50 + (n % 900)));
  if (n % 2000 === 0) {
    low = n - 1500;
    forget.run(low);
  }
  count.run(n, low);
  const times = flags.includes("times");
  if (times) began_ms.push(now_ms());
  db.exec("COMMIT");
  acknowledged = n;
  if (times) committed_ms.push(now_ms());
}

function sometimes(): void {
  if (flags.includes("vacuum") && (n - first) % 3000 === 1) {
    db.exec("VACUUM");
    extra++;
  }
  if (flags.includes("schema") && (n - first) % 500 === 1) {
    db.exec(
      `CREATE TABLE t${n}(a, b); CREATE INDEX i${n} ON t${n}(a); ALTER TABLE t${n} ADD COLUMN c; DROP TABLE t${n}`,
    );
    extra += 4;
  }
}

process.on("SIGTERM", () => undefined);
let report_at = began;
while (performance.now() < until) {
  transaction();
  sometimes();
  const now = performance.now();
  if (now - report_at > 5) {
    report_at = now;
    process.stdout.write(`at ${acknowledged}\n`);
  }
  if (Number(rate) > 0) {
    const early = began + ((n - first) * 1000) / Number(rate) - now;
    if (early > 0.5) Atomics.wait(nap, 0, 0, early);
  }
}
const took_ms = performance.now() - began;
process.stdout.write(`${JSON.stringify({ transactions: n - first + extra, n, took_ms, began_ms, committed_ms })}\n`);
db.close();
