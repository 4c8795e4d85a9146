import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { labelNameOf, stepOf } from "./params.ts";

suite("query API parameters", () => {
  test("a step must be a finite, positive duration", () => {
    assert.deepEqual([stepOf("step", "1.5"), stepOf("step", "5m"), stepOf("step", "")], [1500, 300_000, undefined]);
    for (const text of ["0", "-1", "1e400", "x"])
      assert.throws(() => stepOf("step", text), { code: "invalid_request" });
  });

  test("label names are decoded as Grafana escapes them; other names stay as they are", () => {
    for (const [text, name] of [
      ["app", "app"],
      ["U__a_2e_b__c", "a.b_c"],
      ["U___1F600_", "\u{1f600}"],
      ["U___110000_", "U___110000_"],
    ] as const)
      assert.equal(labelNameOf(text), name);
  });
});
