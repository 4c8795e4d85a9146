import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "node:test";
import { tempStore } from "../../images/fixtures.ts";
import { layoutOf, pathsOf } from "./layout.ts";
import { readRecord } from "./record.ts";

test("a record that cannot be read throws; a torn one counts as missing", (t) => {
  const layout = layoutOf(tempStore(t), "n1");
  const { record } = pathsOf(layout, "m1");
  assert.equal(readRecord(layout, "m1"), undefined);
  mkdirSync(dirname(record), { recursive: true });
  writeFileSync(record, '{"state":"run');
  assert.equal(readRecord(layout, "m1"), undefined, "torn");
  rmSync(record);
  // Stands for a disk that gives errors: it is there, and reading it fails.
  mkdirSync(record);
  assert.throws(() => readRecord(layout, "m1"), { code: "EISDIR" });
});
