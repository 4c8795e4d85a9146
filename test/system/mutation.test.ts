/** Tests of the rules that decide, tested: of all small changes of those rules, how many make a test fail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runs, shell } from "../support.ts";
import { ROOT } from "./child.ts";

const skip = runs(0, 0, 1) === 0 && "takes ten minutes: npm run mutate";

test("at least 85 of 100 mutants of the decision rules make a test fail (Q1)", { skip }, async (t) => {
  const { status, stdout, stderr } = await shell("node scripts/bootstrap.mjs --for=mutate --exec scripts/mutate.ts", {
    cwd: ROOT,
  });
  const score = stdout.split("\n").findLast((line) => line.startsWith("mutation score"));
  t.diagnostic(score ?? "no score");
  assert.equal(status, 0, stdout.slice(-4000) + stderr.slice(-1000));
});
