/** One platform per data dir: a second is refused by name, and a killed one leaves nothing in the way. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { tempDir, within } from "../support.ts";
import { startProgram } from "./child.ts";
import { startDaemon } from "./daemon.ts";

suite("data dir lock", () => {
  test("a second start is refused within a second and names the first; after kill -9 the next works (S7)", async (t) => {
    const dir = tempDir();
    const first = await startDaemon(t, dir);
    for (const verb of [[], ["restore", import.meta.filename]]) {
      const started = performance.now();
      const second = startProgram(t, "src/main.ts", [...verb, "--data-dir", dir, "--listen", "127.0.0.1:0"]);
      const { code } = await second.ended;
      const ms = performance.now() - started;
      t.diagnostic(`refused in ${ms.toFixed(0)} ms`);
      assert.equal(code, 1);
      assert.ok(ms < within(1000), `refused after ${ms} ms`);
      assert.match(second.complaints, new RegExp(`another hangar \\(pid ${first.child.pid}\\) is using the data dir`));
      assert.equal(second.complaints.trim().split("\n").length, 1, "one line, not a stack");
    }
    assert.equal((await first.call("GET", "/v1/orgs")).status, 200, "the first goes on");

    for (let kill = 0; kill < 3; kill++) {
      const before = kill === 0 ? first : await startDaemon(t, dir);
      await before.child.kill();
    }
    const last = await startDaemon(t, dir);
    assert.equal((await last.call("GET", "/v1/orgs")).status, 200);
  });
});
