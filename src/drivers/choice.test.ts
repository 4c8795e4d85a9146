import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { programFile } from "./choice.ts";

test("programFile finds a program in any of the usual folders", {
  skip: process.platform === "linux" ? false : "the kernel is not Linux",
}, () => {
  assert.ok(existsSync(programFile("sh") ?? ""));
  assert.equal(programFile("there-is-no-such-program"), undefined);
});
