import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir, until } from "../../../test/support.ts";
import { CheckpointThread } from "./checkpointer.ts";
import { Application } from "./fixtures.ts";

suite("the checkpoint thread", () => {
  test("ends when it has nothing to do, and starts again for the next log", async (t) => {
    const path = join(tempDir(), "db");
    const app = new Application(path);
    app.db.exec("PRAGMA wal_autocheckpoint = 0");
    const thread = new CheckpointThread(1);
    t.after(async () => {
      await thread.close();
      app.close();
    });
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 50; i++) app.write(3000);
      const before = statSync(path).size;
      await thread.run(path);
      assert.ok(statSync(path).size > before, "the log was copied back");
      await until("it has ended", () => !thread.runs);
    }
  });
});
