import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { openFileTable } from "./file-table.ts";

test("fs.file-max is raised when small, left alone when large, and reported when it stays small", () => {
  const file = join(tempDir(), "file-max");
  writeFileSync(file, "100000\n");
  assert.equal(openFileTable(file), undefined);
  assert.equal(readFileSync(file, "utf8"), "9223372036854775807");
  const large = String(2 ** 50);
  writeFileSync(file, large);
  assert.equal(openFileTable(file), undefined);
  assert.equal(readFileSync(file, "utf8"), large);
  // A setting that the kernel does not allow to change.
  if (process.platform === "linux")
    assert.match(openFileTable("/proc/sys/kernel/ngroups_max") ?? "", /ends at 65536 \(fs\.file-max\)/);
});
