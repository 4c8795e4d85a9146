import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Verb } from "./verb.ts";
import { allVerbs } from "./verbs.ts";

test("every command of every folder can be typed: its noun is in the table", async () => {
  const listed = new Set((await allVerbs()).map(({ words }) => words));
  const files = globSync("*/{index,verbs}.ts", { cwd: import.meta.dirname });
  assert.ok(files.length > 20, `${files.length} files`);
  const modules = await Promise.all(
    files.map((file) => import(join(import.meta.dirname, file)) as Promise<{ VERBS?: readonly Verb[] }>),
  );
  const missing = modules
    .flatMap(({ VERBS = [] }) => VERBS.map(({ words }) => words))
    .filter((one) => !listed.has(one));
  assert.deepEqual(missing, []);
});
