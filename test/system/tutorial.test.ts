/** The first five minutes, as docs/tutorial.md has them: from an empty home, with real containers, and nothing left. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runcMissing } from "#drivers/choice.ts";
import { freePort } from "#proxy/fixtures.ts";
import { shell, tempDir } from "../support.ts";
import { NPX, ROOT } from "./child.ts";
import { leftBehind, nodeIdOf } from "./leaks.ts";

const MINUTES = 5;

test("the tutorial works from an empty home within five minutes, and leaves nothing", async (t) => {
  const missing = runcMissing();
  if (missing) return t.skip(`machines cannot be real here: ${missing}`);
  const page = readFileSync(join(ROOT, "docs/tutorial.md"), "utf8");
  const blocks = [...page.matchAll(/```sh tutorial\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  assert.equal(blocks.length, 6);
  // The port of the page may be someone's on this box; everything else is as it is written.
  const text = blocks
    .slice(0, -1)
    .join("")
    .replaceAll("8088", String(await freePort()));
  const cwd = join(tempDir(), "home");
  mkdirSync(cwd);
  const env = { cwd, HOME: cwd, HANGAR_LISTEN: "127.0.0.1:0" };
  // Whatever happens, no machine outlives the test.
  t.after(() => shell(`${NPX}\nnpx hangar down --all`, env));
  const started = performance.now();
  const { status, stdout, stderr } = await shell(`set -eu -o pipefail\n${NPX}\n${text}`, env);
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  assert.ok(performance.now() - started < MINUTES * 60_000);
  assert.match(stdout, /hello from Hangar[\s\S]*suspended[\s\S]*hello from Hangar/);
  assert.match(stdout, /starting +by proxy: a request came/);
  assert.match(stdout, /^\/tmp$/m);
  assert.match(stdout, /nothing differs/);

  const data_dir = join(cwd, ".hangar");
  const node_id = nodeIdOf(data_dir);
  const [last = ""] = blocks.slice(-1);
  const ended = await shell(`set -eu -o pipefail\n${NPX}\n${last}`, env);
  assert.equal(ended.status, 0, ended.stderr);
  assert.deepEqual(await leftBehind({ data_dir, node_id }, "driver is closed"), {});
  assert.equal((await shell("ls -A", env)).stdout, "hangar.out\nhello.json\n");
});
