/** `hangar db`: nodes, handovers, backups and restores, as a person does it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { allVerbs } from "../../src/cli/verbs.ts";
import { testPlatform } from "../platform.ts";
import { shell, tempDir, until } from "../support.ts";
import { Child, ROOT } from "./child.ts";

const VERBS = await allVerbs();
const HANGAR = join(ROOT, "bin/hangar.mjs");
const hangar = (line: string) => shell(`"${process.execPath}" "${HANGAR}" ${line}`, { cwd: ROOT });

/** The node's address. The node itself is added to `nodes`. */
async function startNode(
  t: TestContext,
  args: string[],
  nodes: Child[] = [],
  program = process.execPath,
): Promise<string> {
  const node = new Child(program, [HANGAR, "db", "node", "--listen", "127.0.0.1:0", ...args]);
  nodes.push(node);
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

const info = async (url: string): Promise<Info> => (await (await fetch(`${url}/info`)).json()) as Info;

test("nodes replicate, hand over, back up and restore through the command", async (t) => {
  const dir = tempDir();
  const lease = ["--lease", `sqlite:${join(dir, "lease.db")}`];
  const backup = join(dir, "backup");
  const first = await startNode(t, ["--dir", join(dir, "a"), ...lease, "--backup", backup]);
  await until("the first is primary", async () => (await info(first)).isPrimary === true);
  const database = new DatabaseSync(join(dir, "a/app.db"), { timeout: 10_000 });
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text); INSERT INTO notes VALUES ('kept')");

  const second = await startNode(t, ["--dir", join(dir, "b"), ...lease]);
  await until("the second has the row", () => count(join(dir, "b/app.db")) === 1);
  const events = await firstLine(`${second}/events`);
  assert.deepEqual(JSON.parse(events), { type: "init", data: { isPrimary: false, hostname: new URL(first).host } });

  const restored = join(dir, "restored.db");
  await until("it can be restored", async () => (await hangar(`db restore ${backup} app.db ${restored}`)).status === 0);
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

test("a cluster with a key and the platform's lease works, and every example of every db command", async (t) => {
  const dir = tempDir();
  const platform = await testPlatform(t);
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  writeFileSync(join(dir, "key"), "0123456789abcdef0123456789abcdef");
  const backup = join(dir, "backup");
  const token_file = ["--token-file", platform.token_file];
  const lease = ["--lease", `platform:${platform.base_url}/web`, ...token_file, "--key-file", join(dir, "key")];
  const nodes: Child[] = [];
  const first = await startNode(t, ["--dir", join(dir, "a"), ...lease, "--backup", backup], nodes);
  await until("the first is primary", async () => (await info(first)).isPrimary === true);
  const database = new DatabaseSync(join(dir, "a/app.db"), { timeout: 10_000 });
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text); INSERT INTO notes VALUES ('kept')");
  const second = await startNode(t, ["--dir", join(dir, "b"), ...lease], nodes);
  await until("the second has the row", () => count(join(dir, "b/app.db")) === 1);
  const early = join(dir, "early.db");
  await until("it can be restored", async () => (await hangar(`db restore ${backup} app.db ${early}`)).status === 0);

  const keyless = await hangar(`db promote ${second}`);
  assert.notEqual(keyless.status, 0);
  assert.match(keyless.stderr, /must be signed with the key of the cluster/);
  const env = {
    HANGAR_DB_KEY: "0123456789abcdef0123456789abcdef",
    HANGAR_DATA_DIR: platform.data_dir,
    DB_BACKUP: backup,
    APP: "web",
  };
  const run = (line: string, node: string) =>
    shell(`hangar() { "${process.execPath}" "${HANGAR}" "$@"; }; cd "${dir}"; ${line}`, {
      cwd: ROOT,
      ...env,
      DB_NODE: node,
      DB_REPLICA: second,
      DB_REPLICA_DIR: join(dir, "b"),
    });
  const verbs = VERBS.filter(({ words }) => words.startsWith("db ") && words !== "db node");
  assert.equal(verbs.length, 13);
  // Promoting last: the others need the node that is primary now.
  for (const { words, examples } of verbs.toSorted(
    (a, b) => Number(a.words === "db promote") - Number(b.words === "db promote"),
  )) {
    for (const example of examples) {
      if (words === "db run") {
        const { status, stderr } = await run(example, first);
        assert.equal(status, 0, stderr);
        assert.match(stderr, /1 transactions were sent to the primary/);
        continue;
      }
      const { status, stdout, stderr } = await run(`${example} --json`, words === "db promote" ? second : first);
      assert.equal(status, 0, `${example}: ${stderr}`);
      assert.doesNotThrow(() => JSON.parse(stdout) as unknown, `${example}: ${stdout}`);
    }
  }
  assert.equal((await info(second)).isPrimary, true);
  // One for each of the two. On a box that stood still for longer than a lease lasts, a node says so, and has a term more.
  const said = nodes.flatMap(({ lines }) => lines);
  const term = 2 + said.filter((line) => / lease of term \d+ /.test(line)).length;
  const { stdout } = await run("hangar db lease web", second);
  assert.match(stdout, new RegExp(`at ${second}, term ${term}\\b`), said.join("\n"));
  database.close();
});

/** Node as people have it: the one that runs the tests, and an older one, which starts the pinned one. */
const older = spawnSync("node", ["-p", "process.execPath + ' ' + process.versions.node"], {
  encoding: "utf8",
  env: {
    ...process.env,
    PATH: (process.env["PATH"] ?? "")
      .split(":")
      .filter((dir) => !dir.includes("node_modules"))
      .join(":"),
  },
});
const [older_path = "", older_version = "24"] = older.stdout.trim().split(" ");

for (const [which, node, skip] of [
  ["", process.execPath, false],
  [" of an older Node", older_path, Number.parseInt(older_version, 10) >= 24 && "there is no older Node here"],
] as const) {
  test(`a node is killed with its command${which}`, { skip }, async (t) => {
    const nodes: Child[] = [];
    const url = await startNode(t, ["--dir", join(tempDir(), "a"), "--primary"], nodes, node);
    assert.equal((await info(url)).isPrimary, true);
    const command = readFileSync(`/proc/${nodes[0]?.pid}/cmdline`, "utf8");
    // Under an older Node a process waits for the one that is the node.
    assert.equal(command.includes("replication/main.ts"), which === "", command);
    await nodes[0]?.kill();
    await until("nobody answers", () =>
      fetch(`${url}/info`).then(
        () => false,
        () => true,
      ),
    );
  });
}

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
