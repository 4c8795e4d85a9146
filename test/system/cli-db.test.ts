/** `hangar db`: two nodes, a handover, a backup and a restore, as a person does it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { shell, tempDir } from "../support.ts";
import { Child, ROOT } from "./child.ts";

const HANGAR = join(ROOT, "bin/hangar.mjs");
const hangar = (line: string) => shell(`"${process.execPath}" "${HANGAR}" ${line}`, { cwd: ROOT });

async function startNode(t: TestContext, args: string[]): Promise<string> {
  const node = new Child(process.execPath, [HANGAR, "db", "node", "--listen", "127.0.0.1:0", ...args]);
  t.after(async () => {
    node.signal("SIGTERM");
    await node.ended;
  });
  return / listens on (\S+)/.exec(await node.until(/ listens on /))?.[1] ?? "";
}

interface Info {
  isPrimary?: boolean;
  [field: string]: unknown;
}

/** Asks until it is so; the limit of the test ends it otherwise. */
async function until(what: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await what())) await delay(50);
}

const info = async (url: string): Promise<Info> => (await (await fetch(`${url}/info`)).json()) as Info;

test("nodes replicate, hand over, back up and restore, all through the command", { timeout: 120_000 }, async (t) => {
  const dir = tempDir(t);
  const lease = ["--lease", `sqlite:${join(dir, "lease.db")}`];
  const backup = join(dir, "backup");
  const first = await startNode(t, ["--dir", join(dir, "a"), ...lease, "--backup", backup]);
  await until(async () => JSON.stringify(await info(first)).includes('"isPrimary":true'));
  const database = new DatabaseSync(join(dir, "a/app.db"), { timeout: 10_000 });
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text); INSERT INTO notes VALUES ('kept')");

  const second = await startNode(t, ["--dir", join(dir, "b"), ...lease]);
  await until(() => count(join(dir, "b/app.db")) === 1);
  const events = await firstLine(`${second}/events`);
  assert.deepEqual(JSON.parse(events), { type: "init", data: { isPrimary: false, hostname: new URL(first).host } });

  const restored = join(dir, "restored.db");
  await until(async () => (await hangar(`db restore ${backup} app.db ${restored}`)).status === 0);
  assert.equal(count(restored), 1);
  const again = await hangar(`db restore ${backup} app.db ${restored}`);
  assert.notEqual(again.status, 0);
  assert.match(again.stderr, /is there already/);

  database.close();
  const promoted = await hangar(`db promote ${second} --json`);
  assert.equal(promoted.status, 0, promoted.stderr);
  const { stdout } = await hangar(`db info ${second} --json`);
  assert.match(stdout, /"isPrimary": true/);
});

function count(file: string): number {
  try {
    const db = new DatabaseSync(file, { readOnly: true });
    try {
      return Number(db.prepare("SELECT count(*) AS n FROM notes").get()?.["n"]);
    } finally {
      db.close();
    }
  } catch {
    return -1; // Not there yet.
  }
}

async function firstLine(url: string): Promise<string> {
  const stop = new AbortController();
  const response = await fetch(url, { signal: stop.signal });
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  stop.abort();
  return (
    Buffer.from(value ?? [])
      .toString()
      .split("\n")[0] ?? ""
  );
}
