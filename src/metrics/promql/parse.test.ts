import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { fuzz, shape } from "../../../test/promql/fuzz.ts";
import { generateQuery } from "../../../test/promql/generate.ts";
import { random, seed } from "../../../test/support.ts";
import type { Dialect } from "./ast.ts";
import { QueryError } from "./errors.ts";
import { parse } from "./parse.ts";
import { print } from "./printer.ts";

/** The error message of an invalid query. */
function refusal(query: string, dialect: Dialect = "metricsql"): string {
  try {
    parse(query, dialect);
  } catch (error) {
    assert.ok(error instanceof QueryError, `a QueryError, not ${String(error)}`);
    assert.equal(error.kind, "bad_data");
    return error.message;
  }
  assert.fail(`${query} was not refused`);
}

suite("query parser", () => {
  test("an error names line and column and points at the place", () => {
    assert.equal(
      refusal("sum(\n  rate(x[5m]) by\n)"),
      '2:15: parse error: "by" stands here, where ")" was expected\n  rate(x[5m]) by\n              ^',
    );
    assert.match(refusal("up +"), /^1:5: parse error: the query ends here/);
    assert.match(refusal("up $"), /^1:4: .*unexpected character/);
    assert.match(refusal('up{app="web}'), /^1:8: .*no closing "/);
  });

  test("a misspelt function gets the nearest name as a suggestion", () => {
    assert.match(refusal("histogram_quantil(0.9, x)"), /did you mean histogram_quantile\?/);
    assert.match(refusal("ratee(x)"), /did you mean rate\?/);
    assert.match(refusal("ratee(x[5m])", "promql"), /did you mean rate\?/);
    assert.doesNotMatch(refusal("completely_different_name(x)"), /did you mean/);
  });

  test("5m is a duration and 5M a number", () => {
    assert.deepEqual(
      [parse("5m").kind, parse("5M").kind, parse("5Mi").kind, parse("1.5h").kind],
      ["duration", "number", "number", "duration"],
    );
  });

  test("operators bind by priority, the power to the right", () => {
    assert.equal(print(parse("a + b * c ^ d ^ e")), "a + (b * (c ^ (d ^ e)))");
    assert.equal(print(parse("a or b and c > d")), "a or (b and (c > d))");
    assert.equal(print(parse("a default b if c")), "a default (b if c)");
    assert.equal(print(parse("-a * b")), "0 - (a * b)");
    assert.equal(print(parse("-a * b", "promql")), "(-a) * b");
    assert.equal(print(parse("-a ^ b", "promql")), "-(a ^ b)");
  });

  test("WITH templates are expanded before parsing continues", () => {
    assert.equal(
      print(parse('WITH (f = {app="web"}, r(m) = rate(m{f}[5m])) r(up) / r(down)')),
      'rate(up{app="web"}[5m]) / rate(down{app="web"}[5m])',
    );
    assert.match(refusal("WITH (f(x) = x) f(1, 2)"), /takes 1 arguments, not 2/);
  });

  test("templates that expand exponentially stop at query_nodes", () => {
    const doubled = Array.from({ length: 40 }, (_, i) => `t${i + 1} = t${i} + t${i}`).join(", ");
    assert.match(refusal(`WITH (t0 = up, ${doubled}) t40`), /query_nodes/);
  });

  test("deeply nested queries are refused without a stack overflow", () => {
    assert.match(refusal(`${"(".repeat(100_000)}1`), /nested deeper than 200|query_bytes/);
    assert.match(refusal(`${"-".repeat(10_000)}1`), /nested deeper/);
    assert.match(refusal("x".repeat(70_000)), /query_bytes/);
    assert.match(refusal(`1${"+1".repeat(30_000)}`), /more than 2000 operators/);
    const long = `x${"+1".repeat(1_500)}`;
    assert.match(refusal(`WITH (f(x) = ${long}) ${"f(".repeat(150)}up${")".repeat(150)}`), /query_nodes|too deeply/);
  });

  test("the PromQL dialect refuses MetricsQL extensions", () => {
    for (const query of [
      "rate(x)",
      "WITH (a = b) a",
      "a default b",
      "x[5i]",
      "12Ki",
      "label_set(x, 'a', 'b')",
      "1 > 2",
      "{}",
      "sum(1)",
    ])
      refusal(query, "promql");
    for (const query of [
      "x and 1",
      "rate(x)[5m]",
      "abs(1)",
      "topk(x)",
      "x offset",
      "sum(x) limit 1",
      "a + on(b) 1",
      "(a, b)",
    ])
      refusal(query, "promql");
  });

  test("the PromQL dialect accepts Prometheus' syntax", () => {
    for (const query of [
      'sum by (le) (rate(http_request_duration_seconds_bucket{job=~"a|b"}[5m] offset 1h))',
      "max_over_time(rate(x_total[5m])[1h:1m] @ end())",
      'label_replace(up, "a", "$1", "b", "(.*)") * on (a) group_left (c) info',
      '{"utf8.name", a="b"}',
      "topk(3, x) > bool 1",
      "-x @ 1609746000.5 offset -5m",
    ]) {
      parse(query, "promql");
    }
  });

  test("a printed query parses to the same tree", (t) => {
    const next = random(seed(t));
    let checked = 0;
    for (let i = 0; i < 3_000; i++) {
      let expr: ReturnType<typeof parse>;
      try {
        expr = parse(generateQuery(next));
      } catch {
        continue;
      }
      checked++;
      assert.equal(shape(parse(print(expr))), shape(expr), print(expr));
    }
    assert.ok(checked > 500, `${checked} queries were valid`);
  });

  test("names that need it are escaped in MetricsQL and quoted in PromQL", () => {
    const written = (query: string): string[] =>
      (["metricsql", "promql"] as const).map((dialect) => print(parse(query, dialect), dialect));
    assert.deepEqual(written('{"a b",c="d"}'), ['a\\ b{c="d"}', '{__name__="a b",c="d"}']);
    assert.deepEqual(written('sum by ("x y", "") (m)'), ['sum(m) by(x\\ y,"")', 'sum(m) by("x y","")']);
  });

  test("random and damaged queries end in a result or a QueryError", (t) => {
    const seen = fuzz(random(seed(t)), 2_000);
    assert.ok(seen.parsed > 300 && seen.evaluated > 200, JSON.stringify(seen));
  });
});
