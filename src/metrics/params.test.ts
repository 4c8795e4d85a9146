import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { labelNameOf, stepOf } from "./params.ts";

suite("parameters of the query API", () => {
  test("a step is a length of time, and an end it has", () => {
    assert.deepEqual([stepOf("step", "1.5"), stepOf("step", "5m"), stepOf("step", "")], [1500, 300_000, undefined]);
    for (const text of ["0", "-1", "1e400", "x"])
      assert.throws(() => stepOf("step", text), { code: "invalid_request" });
  });

  test("names as Grafana escapes them; one that is no such name stands for itself", () => {
    for (const [text, name] of [
      ["app", "app"],
      ["U__a_2e_b__c", "a.b_c"],
      ["U___1F600_", "\u{1f600}"],
      ["U___110000_", "U___110000_"],
    ] as const)
      assert.equal(labelNameOf(text), name);
  });
});
