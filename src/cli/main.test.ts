import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { suite, test } from "node:test";

const MAIN = join(import.meta.dirname, "main.ts");

suite("hangar command", () => {
  test("the command exits silently when its output is closed", async () => {
    const child = spawn(process.execPath, [MAIN, "completion", "bash"], { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.destroy();
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
    assert.deepEqual([said, code], ["", 141]);
  });

  test("apps destroy and machines delete are accepted as aliases", () => {
    for (const [typed, words] of [
      ["apps destroy", "apps delete|rm"],
      ["machines delete", "machines destroy|rm"],
    ] as const) {
      const { stdout, status } = spawnSync(process.execPath, [MAIN, ...typed.split(" "), "--help"], {
        encoding: "utf8",
      });
      assert.match(stdout, new RegExp(words.replace("|", "\\|")), typed);
      assert.equal(status, 0);
    }
  });
});
