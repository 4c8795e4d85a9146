import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { LIMITS } from "#core/limits.ts";
import { runs, seed } from "../../test/support.ts";
import { parseJson } from "./json.ts";

const nested = (levels: number, [open, close]: readonly [string, string] = ["[", "]"]): string =>
  open.repeat(levels) + (open === "[" ? "" : "1") + close.repeat(levels);

suite("JSON parser (P3)", () => {
  test("output of JSON.stringify is parsed as JSON.parse does", (t) => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        for (const spaced of [text, JSON.stringify(JSON.parse(text), null, "\t")])
          assert.deepEqual(parseJson(spaced), JSON.parse(spaced));
      }),
      { seed: seed(t), numRuns: runs(500, 5000) },
    );
  });

  test("a key that occurs twice in one object is refused in any spelling; in two objects it is allowed", () => {
    const twice = ['{"a":1,"a":2}', '{"a":{},"a":2}', '{"a" \n\t:1,"\\u0061":2}', '{"b":[{"a":1}],"a":1,"a":2}'];
    for (const text of [...twice, '{"x":{"a":[],"b":"","a":1}}'])
      assert.throws(() => parseJson(text), {
        code: "malformed_json",
        message: 'the key "a" occurs twice in one object',
      });
    const once = ['{"a":{"a":1}}', '[{"a":1},{"a":1}]', '{"a":"a","b":"a"}', '["a","a"]', '{"a":["a","b","a"]}'];
    const marks = ['{"a":"\\"a\\":","b":"\\\\","c":"}{]["}', '{"":1," ":2,"\\"":3}', '{"a\\\\":1,"a":2}'];
    for (const text of [...once, ...marks, '"a"', " 1 "]) assert.deepEqual(parseJson(text), JSON.parse(text));
  });

  test("nesting is accepted up to the depth limit; width is not limited", () => {
    const [object, depth] = [['{"a":', "}"] as const, LIMITS.json_depth];
    for (const text of [nested(depth), nested(depth, object), `[${"[],{},".repeat(depth)}0]`])
      assert.deepEqual(parseJson(text), JSON.parse(text));
    for (const text of [nested(depth + 1), nested(depth + 1, object), `{"a":${nested(depth)}}`])
      assert.throws(() => parseJson(text), {
        code: "malformed_json",
        message: `the body is nested deeper than ${depth} levels (limit json_depth)`,
      });
  });

  test("invalid JSON is reported by its position, without quoting the body", () => {
    const cases = [
      ['{"a":1,\n "secret" 2}', "the body is not JSON (line 2, column 11)"],
      ['{"a":1 "secret":2}', "the body is not JSON (line 1, column 8)"],
      // The engine's error has no position here, and its message would quote the body.
      ["secret", "the body is not JSON"],
      ['["a",\n\nsecret]', "the body is not JSON"],
    ] as const;
    for (const [text, message] of cases) assert.throws(() => parseJson(text), { code: "malformed_json", message });
  });
});
