import assert from "node:assert/strict";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { openSqlite } from "./database.ts";

suite("SQLite", () => {
  test("a file that is not a database is refused with a clear error and not reported as broken", async (t) => {
    const file = join(tempDir(), "hangar.db");
    writeFileSync(file, "this is something else\n".repeat(1000));
    const broken = t.mock.fn();
    await assert.rejects(openSqlite(file, { onBroken: broken }), {
      name: "DataDirError",
      message: `the database ${file} cannot be opened: file is not a database`,
    });
    assert.equal(broken.mock.callCount(), 0);
  });

  test("a missing folder is refused with a clear error", async () => {
    const file = join(tempDir(), "nowhere/hangar.db");
    await assert.rejects(openSqlite(file), /cannot be opened: .*no such file or directory/);
  });

  test("a changed byte in the WAL is reported as damage, and no acknowledged write goes missing silently", async () => {
    const dir = tempDir();
    const [file, copy] = [join(dir, "hangar.db"), join(dir, "copy.db")];
    const database = await openSqlite(file, { checked: true });
    await database.write([{ sql: "CREATE TABLE t (n BIGINT)" }]);
    for (let n = 0; n < 20; n++) await database.write([{ sql: "INSERT INTO t (n) VALUES (?)", args: [n], rows: 1 }]);
    await database.write([{ sql: "INSERT INTO t (n) VALUES (20)", rows: 2 }]);
    const take = (): Buffer => {
      for (const end of ["", "-wal", "-commits"]) copyFileSync(`${file}${end}`, `${copy}${end}`);
      rmSync(`${copy}-shm`, { force: true });
      return readFileSync(`${copy}-wal`);
    };
    const log = take();
    await database.close();
    const count = async (): Promise<number> => {
      const opened = await openSqlite(copy, { checked: true });
      const rows = await opened.read("SELECT n FROM t");
      await opened.close();
      return rows.length;
    };
    for (const at of [20, Math.floor(log.length / 2), log.length - 100]) {
      const damaged = Buffer.from(log);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
      writeFileSync(`${copy}-wal`, damaged);
      await assert.rejects(count(), /is damaged: the last \d+ transactions? that were acknowledged are not in it/);
      assert.ok(readFileSync(`${copy}-wal`).equals(damaged), "the remaining data can be saved");
    }
    writeFileSync(`${copy}-wal`, log);
    assert.equal(await count(), 20);
    assert.equal(await count(), 20, "also when the log was moved into the database");
  });

  test("calls after close are refused as shutting_down, and a second close does nothing", async () => {
    const database = await openSqlite(join(tempDir(), "hangar.db"));
    await database.close();
    await assert.rejects(database.write([{ sql: "SELECT 1" }]), { code: "shutting_down" });
    await database.close();
  });
});
