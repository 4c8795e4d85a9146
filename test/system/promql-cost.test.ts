/** Queries that would cost too much end soon, with an error that names the limit they met. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Dialect } from "#metrics/promql/ast.ts";
import { instant, QueryError, range } from "#metrics/promql/engine.ts";
import { memorySource } from "#metrics/promql/memory-source.ts";
import { workSince } from "../support.ts";

const DAY = 86_400_000;
const SERIES = 3_000;
const POINTS = 1_440;
const LIMITS = {
  series: 50_000,
  samples: 2_000_000,
  points_per_series: 11_000,
  subquery_points: 11_000,
  memory_bytes: 64 * 2 ** 20,
  time_ms: 2_000,
};

const timestamps = Float64Array.from({ length: POINTS }, (_, i) => i * 15_000);
const values = Float64Array.from({ length: POINTS }, (_, i) => i);
const source = memorySource(
  Array.from({ length: SERIES }, (_, n) => ({
    labels: ["__name__", "m", "a", `${n % 60}`, "b", `${n}`],
    timestamps,
    values,
  })),
);

const nested = (depth: number): string => (depth === 0 ? "m" : `max_over_time(${nested(depth - 1)}[1h:1s])`);
const doubled = Array.from({ length: 30 }, (_, i) => `t${i + 1} = t${i} * t${i}`).join(", ");

/** A query, and what its refusal must name. */
const EXPENSIVE: [string, RegExp][] = [
  ["m * on () group_left () m", /memory_bytes|samples|time_ms|duplicate|many-to-many|same labelset|multiple matches/],
  [nested(50), /subquery_points|samples|time_ms|memory_bytes/],
  [nested(5), /subquery_points|samples|time_ms|memory_bytes/],
  ['{__name__=~".*"} or m', /samples|memory_bytes|time_ms|does not match the empty/],
  ["count by (a, b) (m) + m - m * m / m", /samples|memory_bytes|time_ms/],
  ["quantile_over_time(0.5, m[6h])", /samples|time_ms|memory_bytes/],
  ["sum(rate(m[1h]))", /samples|time_ms/],
  [`WITH (t0 = m, ${doubled}) t30`, /query_nodes|parse error/],
  [`m${" + m".repeat(150)}`, /samples|memory_bytes|time_ms/],
  [`label_join(m, "x", "${"y".repeat(1000)}", ${'"a", '.repeat(500)}"b")`, /memory_bytes|samples|time_ms/],
];

suite("query cost limits (T6)", () => {
  for (const [query, named] of EXPENSIVE) {
    for (const dialect of ["metricsql", "promql"] as Dialect[]) {
      test(`${dialect} query is stopped at its limit: ${query.slice(0, 60)}`, () => {
        const before = process.cpuUsage();
        const grid = { start_ms: 0, end_ms: POINTS * 15_000, step_ms: 15_000 };
        assert.throws(
          () => range({ query, source, dialect, limits: LIMITS, ...grid }),
          (error) => error instanceof QueryError && named.test(error.message),
        );
        const took = workSince(before);
        assert.ok(took < 4_000, `took ${took.toFixed(0)} ms`);
      });
    }
  }

  test("a millisecond step over fifteen days is refused before any sample is read", () => {
    const unread = { select: () => assert.fail("it was read") };
    const refused = (): unknown =>
      range({ query: "m", source: unread, limits: LIMITS, start_ms: 0, end_ms: 15 * DAY, step_ms: 1 });
    assert.throws(refused, /points_per_series is 11000/);
  });

  test("a query of one series takes little CPU time", () => {
    const before = process.cpuUsage();
    instant({ query: 'm{b="7"}', source, time_ms: DAY / 4, limits: LIMITS });
    assert.ok(workSince(before) < 200);
  });
});
