import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type Answer, compare, type Difference, parseAnswer } from "./answers.ts";
import type { Asked } from "./choices.ts";
import { explain, PUSHED_DOWN } from "./rules.ts";

const rangeOf = (query: string): Asked => ({ query, start_ms: 0, end_ms: 60_000, step_ms: 60_000 });

/** An answer with a series for each value, or without any. */
function matrix(...values: string[]): Answer {
  const result = values.map((value) => ({ metric: { vmrange: value }, values: [[0, value]] }));
  return parseAnswer(JSON.stringify({ status: "success", data: { resultType: "matrix", result } }));
}

/** What explains that `theirs` is empty where ours is not, when both answer whatever else is asked as told. */
async function explained(query: string, again: { ours: Answer; theirs: Answer }): Promise<string[] | undefined> {
  const answers = { ours: matrix("1"), theirs: matrix() };
  const difference = compare(answers.ours, answers.theirs, false) as Difference;
  return await explain("victoria-metrics", rangeOf(query), answers, difference, async (asked) => {
    assert.notEqual(asked.query, query, "nothing is proved by asking the same again");
    return again;
  });
}

suite("known differences", () => {
  const SAME = { ours: matrix("2"), theirs: matrix("2") };

  for (const rollup of [
    "histogram_over_time(m)",
    "rollup_candlestick(m[5m])",
    'quantiles_over_time("q", 0.1, 0.9, m)',
    'aggr_over_time(("min_over_time", "sum_over_time", "count_over_time"), m)',
  ])
    test(`${rollup} on both sides of an operator: the labels it makes are pushed down as filters`, async () => {
      const query = `WITH (x = ${rollup} + 3.7) x + x`;
      assert.deepEqual(await explained(query, SAME), [`victoria-metrics 1.79.5: ${PUSHED_DOWN}`]);
    });

  test("a rule explains nothing when the engines differ without its cause, too", async () => {
    const other = { ours: matrix("2"), theirs: matrix("3") };
    assert.equal(await explained("WITH (x = histogram_over_time(m)) x + x", other), undefined);
  });

  test("rounding explains different values, not another type or order", async () => {
    const answers = { ours: matrix("1", "2"), theirs: matrix("2", "1") };
    const scalar = parseAnswer('{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}');
    for (const difference of [compare(answers.ours, scalar, true), compare(answers.ours, answers.theirs, true)]) {
      assert.ok(difference, "they differ");
      assert.equal(await explain("prometheus", rangeOf("m"), answers, difference, async () => answers), undefined);
    }
  });

  test("a query that no rule matches is not explained", async () => {
    assert.equal(await explained("avg_over_time(m) + avg_over_time(m)", SAME), undefined);
  });
});
