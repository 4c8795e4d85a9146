import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, constants, existsSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { tempDir } from "../../../../test/support.ts";
import type { MachinePaths } from "./layout.ts";
import { release } from "./shim.ts";

/** What process 1 does with its pipe: it writes a byte as soon as somebody reads, and goes on. */
function opened(t: { after(end: () => void): void }) {
  const runc_state = tempDir();
  const pipe = join(runc_state, "exec.fifo");
  assert.equal(spawnSync("mkfifo", [pipe]).status, 0);
  const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  t.after(() => closeSync(fd));
  return { paths: { runc_state } as MachinePaths, pipe, begin: () => void writeSync(fd, "0") };
}

suite("the first process of a machine", () => {
  test("has begun when it took its turn, also when it has ended since the last look", async (t) => {
    for (const looks of [1, 2, 5]) {
      const { paths, pipe, begin } = opened(t);
      let look = 0;
      const isAlive = (): boolean => {
        look += 1;
        if (look === looks) begin();
        return look < looks;
      };
      await release(paths, isAlive, systemClock);
      assert.equal(existsSync(pipe), false);
    }
  });

  test("has not begun when it ended without it", async (t) => {
    const { paths } = opened(t);
    await assert.rejects(
      release(paths, () => false, systemClock),
      /ended before it began/,
    );
  });
});
