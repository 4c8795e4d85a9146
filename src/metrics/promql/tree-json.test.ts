/** The trees are those that Prometheus 3.15 answers for the same queries. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { parseAsWritten } from "./parse.ts";
import { treeJson } from "./tree-json.ts";

const NOWHERE = { timestamp: null, startOrEnd: null };
const PLAIN = { offset: 0, offsetExpr: null, ...NOWHERE };
const named = (value: string) => ({ name: "__name__", value, type: "=" });
const selector = (name: string) => ({
  type: "vectorSelector",
  name,
  matchers: [named(name)],
  ...PLAIN,
  anchored: false,
  smoothed: false,
});
const number = (val: string) => ({ type: "numberLiteral", val });
const NO_FILL = { lhs: null, rhs: null };

const trees: Record<string, unknown> = {
  "-3": number("-3"),
  "1 > bool 2": {
    type: "binaryExpr",
    op: ">",
    lhs: number("1"),
    rhs: number("2"),
    matching: null,
    bool: true,
  },
  'sum without (a) (rate(x{code=~"5.."}[5m] offset -1h))': {
    type: "aggregation",
    op: "sum",
    expr: {
      type: "call",
      func: { name: "rate", argTypes: ["matrix"], variadic: 0, returnType: "vector" },
      args: [
        {
          type: "matrixSelector",
          name: "x",
          matchers: [{ name: "code", value: "5..", type: "=~" }, named("x")],
          range: 300_000,
          rangeExpr: null,
          offset: -3_600_000,
          offsetExpr: null,
          ...NOWHERE,
          anchored: false,
          smoothed: false,
        },
      ],
    },
    param: null,
    grouping: ["a"],
    without: true,
  },
  "(a) * on (x) group_left (y) -b": {
    type: "binaryExpr",
    op: "*",
    lhs: { type: "parenExpr", expr: selector("a") },
    rhs: { type: "unaryExpr", op: "-", expr: selector("b") },
    matching: { card: "many-to-one", labels: ["x"], on: true, include: ["y"], fillValues: NO_FILL },
    bool: false,
  },
  "topk(3, a unless b)": {
    type: "aggregation",
    op: "topk",
    expr: {
      type: "binaryExpr",
      op: "unless",
      lhs: selector("a"),
      rhs: selector("b"),
      matching: { card: "many-to-many", labels: [], on: false, include: [], fillValues: NO_FILL },
      bool: false,
    },
    param: number("3"),
    grouping: [],
    without: false,
  },
  "a[5m:] @ end()": {
    type: "subquery",
    expr: selector("a"),
    range: 300_000,
    rangeExpr: null,
    step: 0,
    stepExpr: null,
    offset: 0,
    offsetExpr: null,
    timestamp: null,
    startOrEnd: "end",
  },
  "a[step() * 2] anchored": {
    type: "matrixSelector",
    name: "a",
    matchers: [named("a")],
    range: 0,
    rangeExpr: {
      type: "durationExpr",
      op: "*",
      lhs: { type: "durationExpr", op: "step", lhs: null, rhs: null, wrapped: false },
      rhs: { type: "numberLiteral", val: "2", duration: false },
      wrapped: false,
    },
    ...PLAIN,
    anchored: true,
    smoothed: false,
  },
  "a @ 123.5": { ...selector("a"), timestamp: 123_500 },
  '{"a.b", c="d"}': { ...selector(""), matchers: [named("a.b"), { name: "c", value: "d", type: "=" }] },
};

suite("the tree of a query", () => {
  for (const [query, tree] of Object.entries(trees))
    test(query, () => assert.deepEqual(JSON.parse(JSON.stringify(treeJson(query, parseAsWritten(query)))), tree));

  test("a query that the strict dialect refuses has none", () => {
    assert.throws(() => parseAsWritten("rate(a)"), /rate\(\) takes a range vector/);
    assert.throws(() => parseAsWritten("WITH (x = a) x"), /parse error|expected/);
  });
});
