/** The commands in the examples' own pages, run in their folders as they are written. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { shell, tempDir } from "../support.ts";
import { NPX, ROOT } from "./child.ts";
import { startDaemon } from "./daemon.ts";

const EXAMPLES: Record<string, RegExp> = {
  "web-app": /sleepy[\s\S]*started[\s\S]*complete/,
  "nightly-job": /launch +created/,
  "emulator-tests": /pass 3\n[\s\S]*fail 0\n/,
};

test("the examples run as their pages say", async (t) => {
  const data_dir = join(tempDir(), "data");
  await startDaemon(t, data_dir);
  for (const [name, seen] of Object.entries(EXAMPLES)) {
    const cwd = join(ROOT, "examples", name);
    const page = readFileSync(join(cwd, "README.md"), "utf8");
    const blocks = [...page.matchAll(/```sh example\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
    assert.ok(blocks.length > 0, name);
    const node = `node() { env -u NODE_TEST_CONTEXT "${process.execPath}" "$@"; }`;
    const script = ["set -eu -o pipefail", NPX, node, ...blocks].join("\n");
    const { status, stdout, stderr } = await shell(script, { cwd, HANGAR_DATA_DIR: data_dir });
    assert.equal(status, 0, `${name}: ${stdout}\n${stderr}`);
    assert.match(stdout, seen, name);
  }
});
