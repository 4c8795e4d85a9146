/** `replication-spiller.ts PATH SEED`: transactions too large for SQLite's cache, which commit, roll back, or die with their process. */
import { DatabaseSync } from "node:sqlite";
import { random } from "../support.ts";

const [path = "", start = "0"] = process.argv.slice(2);
const next = random(Number(start) + 1);
const db = new DatabaseSync(path, { timeout: 20_000 });
db.exec(
  "PRAGMA synchronous = OFF; PRAGMA cache_size = 10; CREATE TABLE IF NOT EXISTS big(id INTEGER PRIMARY KEY, v TEXT)",
);
const insert = db.prepare("INSERT INTO big(v) VALUES (?)");
for (let i = 0; i < 20; i++) {
  db.exec("BEGIN IMMEDIATE");
  for (let row = 0; row < 400; row++) insert.run(String(next()).repeat(20));
  db.exec("SAVEPOINT s; UPDATE big SET v = 'u' || v WHERE id % 7 = 0");
  if (i % 2 === 1) db.exec("ROLLBACK TO s");
  const choice = next();
  if (choice < 0.3) db.exec("ROLLBACK");
  else if (choice < 0.4) process.kill(process.pid, "SIGKILL");
  else db.exec("COMMIT");
  if (i % 6 === 5) db.exec("DELETE FROM big WHERE id % 3 = 0");
}
db.close();
