/** Generated and damaged queries: each ends in a result or a QueryError, none hangs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fuzz } from "../promql/fuzz.ts";
import { random, runs, seed } from "../support.ts";

test("random queries end in a result or a QueryError (T9)", (t) => {
  const inputs = runs(10_000, 200_000, 1_000_000);
  const seen = fuzz(random(seed(t)), inputs);
  t.diagnostic(JSON.stringify(seen));
  assert.ok(seen.parsed > inputs / 5 && seen.evaluated > inputs / 10);
});
