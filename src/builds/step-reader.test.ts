import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { StepReader } from "./step-reader.ts";

suite("steps of a build", () => {
  test("the last step that began is found, also when its line comes in pieces", () => {
    const steps = new StepReader(200);
    assert.equal(steps.read("STEP 1/3: FROM scratch\n--> 0123456789ab\nSTEP 2/3: RUN ma"), "1/3 FROM scratch");
    assert.equal(steps.read("ke\ncompiling\nSTEP 9/9 is no step\n"), "2/3 RUN make");
    assert.equal(steps.read("more output\n"), undefined);
  });

  test("a step of several stages names its stage, and a long one is cut", () => {
    const steps = new StepReader(24);
    assert.equal(steps.read("[1/2] STEP 2/4: RUN npm ci\n"), "stage 1/2, 2/4 RUN npm c");
    assert.equal(steps.read(`${"x".repeat(1e6)}\n`), undefined);
  });
});
