/** The blocks of docs/tutorials.md, one after the other in one shell, as they stand there. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { shell, tempDir } from "../support.ts";
import { NPX, ROOT } from "./child.ts";
import { startDaemon } from "./daemon.ts";

test("the tutorials for clouds, agents and Grafana work as written", async (t) => {
  const page = readFileSync(join(ROOT, "docs/tutorials.md"), "utf8");
  const blocks = [...page.matchAll(/```sh tutorials\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  assert.equal(blocks.length, 6);
  const cwd = join(tempDir(), "home");
  mkdirSync(cwd);
  await startDaemon(t, join(cwd, ".hangar"));
  const { status, stdout, stderr } = await shell(`set -eu -o pipefail\n${NPX}\n${blocks.join("echo ----\n")}`, {
    cwd,
    HOME: cwd,
  });
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  const [policy = "", verified = "", tried = "", denied = "", asked = ""] = stdout.split("----\n");
  assert.match(policy, /"personal:backend:\*"/);
  assert.match(verified, /personal:backend:backend-1[\s\S]*refused: it is for somebody else/);
  assert.match(tried, /^allowed by name_prefix[\s\S]*^denied by allowed_endpoints[\s\S]*^denied by name_prefix/m);
  assert.match(denied, /blocked_endpoints[\s\S]*connector_denied[\s\S]*^\S+ +denied +machine agent-1/m);
  assert.match(asked, /"version"[\s\S]*"status":"success"/);
  assert.equal((await shell("ls -A", { cwd })).stdout, ".hangar\n");
});
