import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../../../test/support.ts";
import { SqliteNodeFiles } from "./node-files.ts";

suite("files of the SQLite node", () => {
  test("they are made once, keep versions in use, and run by their own loader without an environment", async () => {
    const dir = join(tempDir(), "sqlite-node");
    for (const version of ["used", "unused", "unused.new"]) mkdirSync(join(dir, version), { recursive: true });
    const files = new SqliteNodeFiles(dir);
    const version = await files.current(() => ["used"]);
    assert.deepEqual(readdirSync(dir).toSorted(), [version, "used"].toSorted());
    const { ino, mode } = statSync(join(files.path(version), "node"));
    assert.equal(mode & 0o555, 0o555, "other users may run it");
    assert.equal(await new SqliteNodeFiles(dir).current(() => []), version);
    assert.deepEqual(readdirSync(dir), [version], "what nobody uses any more is removed");
    assert.equal(statSync(join(files.path(version), "node")).ino, ino, "the files are the same");

    const at = (name: string): string => join(files.path(version), name);
    const args = ["--library-path", at("lib"), at("node"), at("main.cjs"), "--dir"];
    const { status, stderr } = spawnSync(at("ld.so"), args, { env: {}, encoding: "utf8" });
    assert.equal(status, 2, stderr);
    assert.match(stderr, /argument missing/);
  });
});
