/** A query of the strict dialect as the tree that Prometheus' parse_query answers, which its UI draws. */
import type { Matcher } from "../source.ts";
import {
  type AggregateExpr,
  type BinaryExpr,
  type Duration,
  type Expr,
  metricName,
  NAME,
  type RollupExpr,
} from "./ast.ts";
import { signatureOf, typeOf } from "./check.ts";
import { durationMs } from "./durations.ts";
import { OPERATORS } from "./grammar.ts";
import { formatFixed } from "./numbers.ts";
import { lengthMs } from "./strict/lengths.ts";

type Json = { type: string } & Record<string, unknown>;

export function treeJson(text: string, expr: Expr): Json {
  const tree = (part: Expr): Json => treeJson(text, part);
  switch (expr.kind) {
    case "number":
      return { type: "numberLiteral", val: formatFixed(expr.value) };
    case "duration":
      return { type: "numberLiteral", val: formatFixed(written(expr.duration.text) / 1000) };
    case "string":
      return { type: "stringLiteral", val: expr.value };
    case "selector":
      return { type: "vectorSelector", ...selection(expr), ...modifiers({}) };
    case "rollup":
      return rollupJson(text, expr);
    case "call":
      return { type: "call", func: functionJson(expr.name.toLowerCase()), args: expr.args.map(tree) };
    case "aggregate":
      return aggregation(expr, tree);
    case "binary":
      return binaryJson(text, expr, tree);
    case "negate":
      if (expr.arg.kind === "number") return { type: "numberLiteral", val: formatFixed(-expr.arg.value) };
      return { type: "unaryExpr", op: "-", expr: tree(expr.arg) };
    case "parens":
      return { type: "parenExpr", expr: expr.args[0] && tree(expr.args[0]) };
    case "with":
      throw new Error("the strict dialect has no WITH");
  }
}

const written = (text: string): number => durationMs(text, 0) ?? 0;

function selection(expr: Extract<Expr, { kind: "selector" }>): Record<string, unknown> {
  const [matchers = []] = expr.filters;
  // A name in front of the braces comes last; one in quotes is a matcher like any other.
  const named = /^[a-zA-Z_:][\w:]*$/.test(metricName(expr) ?? "");
  const last = ({ name, op }: Matcher): number => Number(named && name === NAME && op === "=");
  return {
    name: named ? metricName(expr) : "",
    matchers: matchers.toSorted((a, b) => last(a) - last(b)).map(({ name, value, op }) => ({ name, value, type: op })),
  };
}

function modifiers({ offset, moment, boundary }: Partial<RollupExpr>): Record<string, unknown> {
  return { ...shift({ offset, moment }), anchored: boundary === "anchored", smoothed: boundary === "smoothed" };
}

type Shift = { [part in "offset" | "moment"]?: RollupExpr[part] | undefined };

function shift({ offset, moment }: Shift): Record<string, unknown> {
  const edge = moment?.kind === "call" ? moment.name.toLowerCase() : null;
  return {
    ...lengthJson("offset", offset),
    timestamp: moment && edge === null ? lengthMs(moment, NO_GRID) : null,
    startOrEnd: edge,
  };
}

/** What is computed from the query's own length and step is known only when it runs. */
const NO_GRID = { start_ms: 0, end_ms: 0, step_ms: 0 };

/** Milliseconds under the name, and what they are computed from beside it. */
function lengthJson(name: string, length: Duration | undefined): Record<string, unknown> {
  const negative = length?.computed?.kind === "negate" && /number|duration/.test(length.computed.arg.kind);
  const computed = negative ? undefined : length?.computed;
  return {
    [name]: length && !computed ? written(length.text) : 0,
    [`${name}Expr`]: computed ? computedJson(computed) : null,
  };
}

function computedJson(expr: Expr): Json {
  switch (expr.kind) {
    case "number":
      return { type: "numberLiteral", val: formatFixed(expr.value), duration: false };
    case "duration":
      return { type: "numberLiteral", val: formatFixed(written(expr.duration.text) / 1000), duration: true };
    case "parens":
      return { ...(expr.args[0] ? computedJson(expr.args[0]) : { type: "durationExpr" }), wrapped: true };
    case "negate":
      return durationExpr("-", undefined, expr.arg);
    case "binary":
      return durationExpr(expr.op, expr.left, expr.right);
    case "call":
    case "aggregate":
      return durationExpr(expr.name.toLowerCase(), ...(expr.args as [Expr?, Expr?]));
    default:
      throw new Error(`a duration cannot be computed from a ${expr.kind}`);
  }
}

const durationExpr = (op: string, left?: Expr, right?: Expr): Json => ({
  type: "durationExpr",
  op,
  lhs: left ? computedJson(left) : null,
  rhs: right ? computedJson(right) : null,
  wrapped: false,
});

function rollupJson(text: string, expr: RollupExpr): Json {
  const { arg, window, step, inheritStep, offset, moment } = expr;
  if (step || inheritStep) {
    const lengths = { ...lengthJson("range", window), ...lengthJson("step", step) };
    return { type: "subquery", expr: treeJson(text, arg), ...lengths, ...shift({ offset, moment }) };
  }
  // Suffixes that were written one by one are nested.
  if (arg.kind === "rollup") return rollupJson(text, { ...arg, ...expr, arg: arg.arg });
  if (arg.kind !== "selector") throw new Error("brackets, offset and @ follow a selector or a subquery");
  const range = window ? lengthJson("range", window) : {};
  return { type: window ? "matrixSelector" : "vectorSelector", ...selection(arg), ...range, ...modifiers(expr) };
}

function functionJson(name: string): Record<string, unknown> {
  const { args, optional, repeated, result } = signatureOf(name);
  return { name, argTypes: args, variadic: repeated ? -1 : optional, returnType: result };
}

/** The parameter stands before the vector. */
function aggregation({ name, args, modifier }: AggregateExpr, tree: (part: Expr) => Json): Json {
  const [first, second] = args;
  const [param, expr] = second ? [first, second] : [undefined, first];
  return {
    type: "aggregation",
    op: name,
    expr: expr ? tree(expr) : null,
    param: param ? tree(param) : null,
    grouping: modifier?.labels ?? [],
    without: modifier?.op === "without",
  };
}

function binaryJson(text: string, expr: BinaryExpr, tree: (part: Expr) => Json): Json {
  const { op, left, right, bool } = expr;
  const vectors = [left, right].every((side) => typeOf(text, side) === "vector");
  const matching = vectors ? matchingJson(expr) : null;
  return { type: "binaryExpr", op, lhs: tree(left), rhs: tree(right), matching, bool: bool === true };
}

function matchingJson({ op, group, join, fillLeft, fillRight }: BinaryExpr): Record<string, unknown> {
  const joined = join && (join.op === "group_left" ? "many-to-one" : "one-to-many");
  return {
    card: OPERATORS[op]?.kind === "set" ? "many-to-many" : (joined ?? "one-to-one"),
    labels: group?.labels ?? [],
    on: group?.op === "on",
    include: join?.labels ?? [],
    fillValues: { lhs: fillLeft ?? null, rhs: fillRight ?? null },
  };
}
