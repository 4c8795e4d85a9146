import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { openSqlite } from "./database.ts";

suite("sqlite", () => {
  test("a file that is no database is refused in words, and nothing is said to be broken", async (t) => {
    const file = join(tempDir(), "hangar.db");
    writeFileSync(file, "this is something else\n".repeat(1000));
    const broken = t.mock.fn();
    await assert.rejects(openSqlite(file, { onBroken: broken }), {
      name: "DataDirError",
      message: `the database ${file} cannot be opened: file is not a database`,
    });
    assert.equal(broken.mock.callCount(), 0);
  });

  test("a folder that is not there is refused in words", async () => {
    const file = join(tempDir(), "nowhere/hangar.db");
    await assert.rejects(openSqlite(file), /cannot be opened: .*no such file or directory/);
  });

  test("after its end it says so, and ending twice is ending once", async () => {
    const database = await openSqlite(join(tempDir(), "hangar.db"));
    await database.close();
    await assert.rejects(database.write([{ sql: "SELECT 1" }]), { code: "shutting_down" });
    await database.close();
  });
});
