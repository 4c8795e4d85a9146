/**
 * An application that knows what it was promised: `replication-recorder.ts PATH NODE FIRST`. Commits one number after the other
 * from FIRST on, asks the node after each commit whether it is acknowledged, and prints the numbers that were. Ends
 * when the node does not answer any more, or writing fails.
 */
import { DatabaseSync } from "node:sqlite";

const [path = "", node = "", first = "1"] = process.argv.slice(2);
const db = new DatabaseSync(path, { timeout: 1000 });
const insert = db.prepare("INSERT INTO notes (n, pad) VALUES (?, ?)");
for (let n = Number(first); ; n++) {
  insert.run(n, "x".repeat(n % 400));
  const response = await fetch(`${node}/wait?db=db&timeout=20s`);
  const { status } = response;
  await response.arrayBuffer();
  if (status === 200) process.stdout.write(`${n}\n`);
}
