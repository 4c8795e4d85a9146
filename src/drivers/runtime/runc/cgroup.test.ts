import assert from "node:assert/strict";
import { test } from "node:test";
import { swapProblem } from "./cgroup.ts";

const HEAD = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

test("a host without swap offers none to machines", () => {
  assert.match(swapProblem(HEAD) ?? "", /no swap/);
});

test("a host with swap offers it to machines if its kernel accounts it", () => {
  const problem = swapProblem(`${HEAD}/swapfile file 2097148 0 -2\n`);
  assert.match(problem ?? "accounted", /accounted|swapaccount=1/);
});
