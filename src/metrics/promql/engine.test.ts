import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Clock } from "#core/clock.ts";
import { random, seed } from "../../../test/support.ts";
import { instant, parse, QueryError, RollupCache, range, selectorsOf } from "./engine.ts";
import { labelsKey } from "./labels.ts";
import { type MemorySeries, memorySource } from "./memory-source.ts";
import type { QueryResult } from "./results.ts";

const MINUTE = 60_000;

function series(count: number, points: number, next: () => number = () => 0.5): MemorySeries[] {
  return Array.from({ length: count }, (_, n) => {
    const steps = Array.from({ length: points }, (_, i) => i).filter(() => next() < 0.9);
    return {
      labels: ["__name__", "m", "app", `a${n % 3}`, "instance", `${n}`],
      timestamps: Float64Array.from(steps, (i) => i * 15_000),
      values: Float64Array.from(steps, (i) => Math.floor(next() * 100) + i * n),
    };
  });
}

const ten = memorySource(series(10, 100));
const grid = { start_ms: 0, end_ms: 20 * MINUTE, step_ms: MINUTE };

function error(run: () => unknown): QueryError {
  try {
    run();
  } catch (thrown) {
    assert.ok(thrown instanceof QueryError, String(thrown));
    return thrown;
  }
  assert.fail("nothing was refused");
}

/** Results as text, series in any order. */
function text({ data }: QueryResult): string[] {
  assert.ok(data.type === "matrix" || data.type === "vector");
  return data.series
    .map(
      (s) =>
        `${labelsKey(s.labels)} ${[...s.timestamps].join()} ${Array.from(s.values, (v) => v.toPrecision(9)).join()}`,
    )
    .sort();
}

suite("query limits and their names", () => {
  const cases: [string, string, object][] = [
    ["series", "m", { series: 5 }],
    ["samples", "sum(m)", { samples: 200 }],
    ["points_per_series", "m", { points_per_series: 10 }],
    ["subquery_points", "max_over_time(m[1h:1s])", { subquery_points: 100 }],
    ["memory_bytes", "m + m", { memory_bytes: 1000 }],
  ];
  for (const [name, query, limits] of cases) {
    for (const dialect of ["metricsql", "promql"] as const) {
      test(`${name} is enforced in ${dialect}`, () => {
        const refused = error(() => range({ query, source: ten, ...grid, limits, dialect }));
        assert.match(refused.message, new RegExp(`; the limit ${name} is \\d+$`));
      });
    }
  }

  test("the time limit uses the given clock", () => {
    let now = 0;
    const clock: Clock = { now: () => 0, monotonic: () => (now += 10), sleep: () => Promise.resolve() };
    const refused = error(() => range({ query: "sum(m)", source: ten, ...grid, limits: { time_ms: 50 }, clock }));
    assert.equal(refused.kind, "timeout");
    assert.match(refused.message, /time_ms is 50/);
  });

  test("a cancelled query stops at the next series", () => {
    let polls = 0;
    const refused = error(() => range({ query: "sum(m)", source: ten, ...grid, isCancelled: () => ++polls > 4 }));
    assert.equal(refused.kind, "canceled");
    assert.equal(polls, 5);
  });

  test("a range query needs a positive step and an end after its start", () => {
    assert.match(error(() => range({ query: "m", source: ten, ...grid, step_ms: 0 })).message, /step/);
    assert.match(error(() => range({ query: "m", source: ten, ...grid, end_ms: -1 })).message, /end/);
  });
});

suite("evaluation", () => {
  test("a streaming aggregation gives the result of one over all rows", (t) => {
    const next = random(seed(t));
    const source = memorySource(series(30, 80, next));
    for (const name of ["sum", "avg", "min", "max", "count", "group", "sum2", "geomean", "stddev", "stdvar"]) {
      for (const by of ["", " by (app)", " without (instance)"]) {
        const streamed = range({ query: `${name}(rate(m[2m]))${by}`, source, ...grid });
        // Sorting needs all rows at once, so this one cannot stream.
        const gathered = range({ query: `${name}(sort(rate(m[2m])))${by}`, source, ...grid });
        assert.deepEqual(text(streamed), text(gathered), `${name}${by}`);
      }
    }
  });

  test("a step of a range query equals an instant query at that time", (t) => {
    const source = memorySource(series(10, 80, random(seed(t))));
    for (const query of [
      "sum_over_time(m[3m])",
      "max(m)",
      "increase_prometheus(m[5m])",
      "count_over_time(m[2m]) > 3",
    ]) {
      const whole = range({ query, source, ...grid, dialect: "metricsql" });
      const moment = instant({ query, source, time_ms: 10 * MINUTE, step_ms: MINUTE });
      const middle = whole.data.type === "matrix" ? whole.data.series : [];
      const found = middle.flatMap((s) => {
        const i = s.timestamps.indexOf(10 * MINUTE);
        return i < 0 ? [] : [`${labelsKey(s.labels)} ${s.values[i]}`];
      });
      const single =
        moment.data.type === "vector" ? moment.data.series.map((s) => `${labelsKey(s.labels)} ${s.values[0]}`) : [];
      assert.deepEqual(found.sort(), single.sort(), query);
    }
  });

  test("results are sorted unless the query orders them", () => {
    const names = (query: string): string[] => {
      const { data } = instant({ query, source: ten, time_ms: 20 * MINUTE });
      return data.type === "vector" ? data.series.map((s) => s.labels[5] ?? "") : [];
    };
    assert.deepEqual(names("m"), ["0", "3", "6", "9", "1", "4", "7", "2", "5", "8"], "by app, then instance");
    assert.deepEqual(names("topk(2, m)"), ["9", "8"]);
    assert.deepEqual(names("sort_desc(m)").slice(0, 2), ["9", "8"]);
  });

  test("topk_avg sums the rest under the given label", () => {
    const { data } = range({ query: 'topk_avg(1, sum(m) by (app), "other")', source: ten, ...grid });
    assert.ok(data.type === "matrix");
    assert.deepEqual(
      data.series.map((s) => s.labels.join(" ")),
      ["other other", "app a0"],
    );
  });

  test("duplicate series in a result are refused", () => {
    assert.match(
      error(() => range({ query: 'label_set(m, "instance", "", "app", "")', source: ten, ...grid })).message,
      /duplicate/,
    );
    assert.match(
      error(() =>
        range({
          query: "ceil({app=~'a.'})",
          source: memorySource([
            ...series(1, 5),
            { ...(series(1, 5)[0] as MemorySeries), labels: ["__name__", "n", "app", "a0", "instance", "0"] },
          ]),
          ...grid,
          dialect: "promql",
        }),
      ).message,
      /same labelset/,
    );
  });

  test("selectorsOf lists the selectors of a query", () => {
    const found = selectorsOf(parse('sum(rate(a{x="1"}[5m])) / b + max_over_time(c[1h:1m] @ end())'));
    assert.deepEqual(
      found.map((s) => s.filters[0]?.[0]?.value),
      ["a", "b", "c"],
    );
  });
});

suite("rollup cache", () => {
  test("cached results stay correct while time advances", (t) => {
    const next = random(seed(t));
    const all = series(12, 400, next);
    const cache = new RollupCache(10_000_000);
    const queries = [
      "sum(rate(m[5m])) by (app)",
      "rate(m[5m])",
      "max(m)",
      "count_over_time(m[2m])",
      "avg(increase(m[10m])) without (instance)",
      "max(m offset -20m)",
    ];
    for (let now = 30 * MINUTE; now <= 90 * MINUTE; now += 7 * MINUTE) {
      // Only what has been written by now can be seen.
      const source = memorySource(
        all.map((s) => {
          const written = Array.from(s.timestamps).filter((time) => time <= now).length;
          return {
            ...s,
            timestamps: (s.timestamps as Float64Array).slice(0, written),
            values: (s.values as Float64Array).slice(0, written),
          };
        }),
      );
      for (const query of queries) {
        const request = { query, source, start_ms: now - 25 * MINUTE, end_ms: now, step_ms: MINUTE };
        const cached = range({ ...request, cache, immutable_before_ms: now });
        assert.deepEqual(text(cached), text(range(request)), `${query} at ${now / MINUTE} min`);
      }
    }
    assert.ok(cache.bytes > 0);
  });

  test("a repeated query reads only samples that may still change", () => {
    const cache = new RollupCache(10_000_000);
    const request = { query: "sum(rate(m[1m]))", source: ten, ...grid, cache, immutable_before_ms: 15 * MINUTE };
    const first = range(request).samples;
    const second = range(request).samples;
    assert.ok(second < first, `${second} of ${first} samples`);
    cache.clear();
    assert.equal(range(request).samples, first);
  });

  test("the cache stays within its size", () => {
    const cache = new RollupCache(20_000);
    for (let i = 1; i < 200; i++)
      range({ query: `sum(rate(m[${i}s]))`, source: ten, ...grid, cache, immutable_before_ms: 1e12 });
    assert.ok(cache.bytes > 0 && cache.bytes <= 20_000, `${cache.bytes} bytes`);
  });
});
