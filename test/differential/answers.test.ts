import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type Answer, compare, parseAnswer } from "./answers.ts";

const vector = (...rows: [app: string, value: string][]): Answer =>
  parseAnswer(
    JSON.stringify({
      status: "success",
      data: {
        resultType: "vector",
        result: rows.map(([app, value]) => ({ metric: { app, __name__: "up" }, value: [1, value] })),
      },
    }),
  );

suite("comparison of query responses", () => {
  test("responses that differ only in the last digits or the order are equal", () => {
    const ours = vector(["a", "1"], ["b", "NaN"], ["c", "+Inf"]);
    assert.equal(compare(ours, vector(["b", "NaN"], ["a", "1.0000000001"], ["c", "+Inf"]), false), undefined);
  });

  test("another value, series, type, order or status is a difference", () => {
    const ours = vector(["a", "1"], ["b", "2"]);
    assert.deepEqual(compare(ours, vector(["a", "1"], ["b", "2.00001"]), false)?.values, [
      { labels: '{"__name__":"up","app":"b"}', time: 1, ours: 2, theirs: 2.00001 },
    ]);
    assert.deepEqual(compare(ours, vector(["a", "1"]), false)?.onlyOurs, ['{"__name__":"up","app":"b"}']);
    assert.ok(compare(ours, vector(["b", "2"], ["a", "1"]), true)?.order);
    const scalar = parseAnswer('{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}');
    assert.deepEqual(compare(ours, scalar, false)?.types, { ours: "vector", theirs: "scalar" });
    const refused = parseAnswer('{"status":"error","error":"no"}');
    assert.deepEqual(compare(ours, refused, false)?.errors, { ours: undefined, theirs: "no" });
    assert.equal(compare(refused, refused, false), undefined);
  });
});
