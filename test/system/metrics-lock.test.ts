/** One process per metrics folder, independent of the lock of the data dir. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { tempDir } from "../support.ts";
import { startProgram } from "./child.ts";

suite("lock of the metrics folder", () => {
  test("a second process is refused at once with the holder's pid; after kill -9 the next one opens it", async (t) => {
    const dir = tempDir();
    const open = () => startProgram(t, "test/system/metrics-holder.ts", [dir]);
    const first = open();
    await first.until(/^open$/);
    const began = performance.now();
    const second = open();
    const { code } = await second.ended;
    t.diagnostic(`refused in ${(performance.now() - began).toFixed(0)} ms, the start of its program with it`);
    assert.equal(code, 1);
    assert.match(second.complaints, new RegExp(`another process \\(pid ${first.pid}\\) is using it; stop that one`));
    assert.deepEqual(second.lines, []);

    await first.kill();
    await open().until(/^open$/);
  });
});
