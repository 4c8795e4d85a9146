/** The examples in Vitest and Jest, which are installed for them alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runs, shell } from "../support.ts";
import { ROOT } from "./child.ts";

const skip = runs(0, 1) === 0 && "installs two test runners: npm run examples";

test("the emulator examples run in Vitest and Jest", { skip }, async () => {
  const { status, stdout, stderr } = await shell(
    "node scripts/bootstrap.mjs --for=examples --exec scripts/examples.ts",
    { cwd: ROOT },
  );
  assert.equal(status, 0, stdout.slice(-4000) + stderr.slice(-4000));
  assert.match(stdout, /^ok {3}emulator-jest$/m);
  assert.match(stdout, /^ok {3}emulator-vitest$/m);
});
