/** Every core case of the shared conformance data passes, replays included. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runConformance } from "../promql/conformance.ts";

const dir = process.env["HANGAR_CONFORMANCE"] ?? join(import.meta.dirname, "../../../shared/conformance");

test("the PromQL conformance cases pass (T8)", (t) => {
  if (!existsSync(dir)) {
    t.skip(`no conformance data at ${dir}; set HANGAR_CONFORMANCE to its folder`);
    return;
  }
  const cases = runConformance(dir).filter(({ core }) => core);
  assert.ok(cases.length > 0, "cases were found");
  const failed = cases.filter(({ wrong }) => wrong !== undefined);
  assert.deepEqual(failed, []);
  t.diagnostic(`${cases.length} core cases`);
});
