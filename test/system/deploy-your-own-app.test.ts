/** docs/deploy-your-own-app.md as it is written: Debian's Python and Node, with real machines, from an empty home. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runcMissing } from "#drivers/choice.ts";
import { freePort } from "#proxy/fixtures.ts";
import { shell, tempDir } from "../support.ts";
import { NPX, ROOT } from "./child.ts";

const noBootstrap = (): string | undefined =>
  spawnSync("which", ["mmdebstrap"]).status === 0 ? undefined : "mmdebstrap is not installed";

test("the tutorial's commands deploy, change, roll back and scale one's own app", async (t) => {
  const missing = runcMissing() ?? noBootstrap();
  if (missing) return t.skip(`it cannot be run here: ${missing}`);
  const page = readFileSync(join(ROOT, "docs/deploy-your-own-app.md"), "utf8");
  const blocks = [...page.matchAll(/```sh own-app\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  assert.equal(blocks.length, 9);
  // The ports of the page may be someone's on this box; everything else is as it is written.
  const text = blocks
    .join("")
    .replaceAll("8091", String(await freePort()))
    .replaceAll("8092", String(await freePort()));
  const cwd = join(tempDir(), "home");
  mkdirSync(cwd);
  const env = { cwd, HOME: cwd, HANGAR_LISTEN: "127.0.0.1:0" };
  // Whatever happens, no machine outlives the test.
  t.after(() => shell(`${NPX}\n[ ! -d .hangar ] || npx hangar down --all`, env));
  const { status, stdout, stderr } = await shell(`set -eu -o pipefail\n${NPX}\n${text}`, env);
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  const served = stdout.split("\n").filter((line) => /^(hello from|welcome to) the shop/.test(line));
  assert.deepEqual(
    served,
    ["hello from", "welcome to", "hello from", "hello from", "welcome to"].map((words, at) =>
      at < 4 ? `${words} the shop, no greeting yet` : `${words} the shop, good morning`,
    ),
  );
  assert.match(stderr, /\| ModuleNotFoundError: No module named 'does_not_exist'/);
  assert.match(stdout, /^exit code 1$/m);
  assert.match(stdout, /^app: 2$/m);
  assert.match(stdout, /^it is \d{4}-/m);
  assert.equal((await shell("ls -A", env)).stdout, "");
});
