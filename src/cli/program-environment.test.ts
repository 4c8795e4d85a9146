import assert from "node:assert/strict";
import { test } from "node:test";
import { programEnvironment } from "./program-environment.ts";

test("programs cache compiled code and return freed memory, unless the environment overrides it", () => {
  const given = programEnvironment({ HOME: "/home/somebody", PATH: "/bin" });
  assert.match(given["NODE_COMPILE_CACHE"] ?? "", /node_modules\/\.cache\/compile$/, "a checkout has its own cache");
  assert.equal(given["MALLOC_ARENA_MAX"], "1");
  assert.equal(given["PATH"], "/bin");
  const own = programEnvironment({ NODE_COMPILE_CACHE: "", MALLOC_ARENA_MAX: "8" });
  assert.deepEqual([own["NODE_COMPILE_CACHE"], own["MALLOC_ARENA_MAX"]], ["", "8"]);
});
