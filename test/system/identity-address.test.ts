/** A machine is known by its private address, in a network that is the test's own. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const missing =
  spawnSync("unshare", ["--net", "ip", "link", "set", "lo", "up"]).status === 0
    ? undefined
    : "a network namespace cannot be made here";

test("the gateway authenticates machines by their private address, and no other client", { skip: missing }, () => {
  const program = join(import.meta.dirname, "identity-address-calls.ts");
  const { status, stdout, stderr } = spawnSync("unshare", ["--net", process.execPath, program], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /all as it should be/);
});
