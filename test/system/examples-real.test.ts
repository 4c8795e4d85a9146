/** The example that needs real machines: PostgreSQL on a volume, as its page says, and nothing left of it. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runcMissing } from "#drivers/choice.ts";
import { shell, tempDir } from "../support.ts";
import { NPX, ROOT, startProgram } from "./child.ts";
import { leftBehind } from "./leaks.ts";

const missing = existsSync("/usr/lib/postgresql") ? runcMissing() : "there is no Postgres (apt-get install postgresql)";
const skip = missing ? `machines with a database cannot be real here: ${missing}` : false;

test("a database on a volume survives restarts, and a snapshot restores it", { skip }, async (t) => {
  const cwd = join(ROOT, "examples/postgres-volume");
  const page = readFileSync(join(cwd, "README.md"), "utf8");
  const blocks = [...page.matchAll(/```sh real\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  const dir = tempDir();
  const data_dir = join(dir, "data");
  const TMPDIR = join(dir, "tmp");
  mkdirSync(TMPDIR);
  const child = startProgram(t, "src/main.ts", ["--data-dir", data_dir, "--listen", "127.0.0.1:0"]);
  await child.until(/ is ready /);
  const env = { cwd, TMPDIR, HANGAR_DATA_DIR: data_dir };
  // Whatever happens, no machine outlives the test.
  t.after(() => shell(`${NPX}\nnpx hangar down --all`, env));
  const { status, stdout, stderr } = await shell(["set -eu -o pipefail", NPX, ...blocks].join("\n"), env);
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  assert.match(stdout, /^before the restart$/m);
  assert.match(stdout, /^before the restart, and after the snapshot\nnow: 0$/m);
  const node_id = readFileSync(join(data_dir, "node_id"), "utf8").trim();
  await shell(`${NPX}\nnpx hangar down --all`, env);
  assert.deepEqual(await leftBehind({ data_dir, node_id }, "driver is closed"), {});
});
