/** The benchmark of many machines in a small form: it runs, its pages are whole, and nothing of its mixed load fails. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PrintedReport } from "../../bench/report.ts";
import { measureScale } from "../../bench/scale.ts";
import { postgresMissing } from "../postgres.ts";
import { runs } from "../support.ts";

test("lists, starts and a mixed load work with many machines on PostgreSQL", { skip: postgresMissing() }, async () => {
  const report = new PrintedReport(() => {});
  const machines = runs(2000, 100_000);
  const failures = await measureScale(report, { machines, hosts: 20, seconds: runs(2, 60) });
  assert.deepEqual(failures, []);
  const named = new Set(report.rows.map(({ what }) => what));
  for (const what of [`start to ready at ${machines} machines`, "create, p50", "SIGTERM to the end"])
    assert.ok(named.has(what), what);
});
