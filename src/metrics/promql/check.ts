import { compileRegex } from "../regex.ts";
import type { Matcher } from "../source.ts";
import { type AggregateExpr, type BinaryExpr, type CallExpr, children, type Expr, type RollupExpr } from "./ast.ts";
import { parseError } from "./errors.ts";
import { nearest } from "./functions/names.ts";
import { OPERATORS } from "./grammar.ts";
import { dropParens } from "./simplify.ts";

/** Type checker of the strict dialect: every expression has a type, and every function declares which ones it takes. */

type Type = "scalar" | "vector" | "matrix" | "string";

const TYPES: Record<string, Type> = { n: "scalar", v: "vector", m: "matrix", s: "string" };
const NAMES: Record<Type, string> = {
  scalar: "a number",
  vector: "an instant vector",
  matrix: "a range vector such as metric[5m]",
  string: "a string",
};

/** `arguments > result`, `l` matchers of labels; `?` may be left out, `*` may come any number of times. */
const SIGNATURES: Record<string, string> = {
  ...same(
    "v > v",
    "abs absent acos acosh asin asinh atan atanh ceil cos cosh deg exp floor histogram_avg histogram_count",
  ),
  ...same(
    "v > v",
    "histogram_stddev histogram_stdvar histogram_sum ln log10 log2 rad sgn sin sinh sort sort_desc sqrt",
  ),
  ...same("v > v", "tan tanh timestamp"),
  ...same("v? > v", "day_of_month day_of_week day_of_year days_in_month hour minute month year"),
  ...same(
    "m > v",
    "absent_over_time avg_over_time changes count_over_time delta deriv first_over_time idelta increase irate",
  ),
  ...same("m > v", "last_over_time mad_over_time max_over_time min_over_time present_over_time rate resets"),
  ...same("m > v", "stddev_over_time stdvar_over_time sum_over_time ts_of_first_over_time ts_of_last_over_time"),
  ...same("m > v", "ts_of_max_over_time ts_of_min_over_time"),
  ...same("> n", "end pi range start step time"),
  ...same("n n* > n", "max_of min_of"),
  ...same("v s* > v", "sort_by_label sort_by_label_desc"),
  ...same("m n n > v", "double_exponential_smoothing holt_winters"),
  clamp: "v n n > v",
  clamp_max: "v n > v",
  clamp_min: "v n > v",
  histogram_fraction: "n n v > v",
  histogram_quantile: "n v > v",
  histogram_quantiles: "v s n n* > v",
  info: "v l? > v",
  label_join: "v s s s* > v",
  label_replace: "v s s s s > v",
  predict_linear: "m n > v",
  quantile_over_time: "n m > v",
  round: "v n? > v",
  scalar: "v > n",
  vector: "n > v",
};

function same(signature: string, names: string): Record<string, string> {
  return Object.fromEntries(names.split(" ").map((name) => [name, signature]));
}

export function checkStrict(text: string, expr: Expr): void {
  check(text, expr);
}

/** The type of an expression that was checked; parentheses have that of what is in them. */
export function typeOf(text: string, expr: Expr): Type {
  const [only] = expr.kind === "parens" ? expr.args : [];
  return only ? typeOf(text, only) : check(text, dropParens(expr));
}

/** A function that exists, as Prometheus describes one. */
export function signatureOf(name: string): { args: Type[]; optional: number; repeated: boolean; result: Type } {
  const [left = "", result = ""] = (SIGNATURES[name] ?? "").split(">");
  const params = left.split(" ").filter((param) => param !== "");
  return {
    args: params.map((param) => TYPES[param.charAt(0)] ?? "vector"),
    optional: params.filter((param) => param.endsWith("?")).length,
    repeated: params.some((param) => param.endsWith("*")),
    result: TYPES[result.trim()] ?? "vector",
  };
}

/** The type of an expression; throws at the first thing that does not fit. */
function check(text: string, expr: Expr): Type {
  switch (expr.kind) {
    case "number":
    case "duration":
      return "scalar";
    case "string":
      return "string";
    case "selector":
      return checkSelector(text, expr);
    case "rollup":
      return checkRollup(text, expr);
    case "call":
      return checkCall(text, expr);
    case "aggregate":
      return checkAggregate(text, expr);
    case "binary":
      return checkBinary(text, expr);
    case "negate":
      return expect(text, expr.arg, ["scalar", "vector"], "-");
    case "parens":
    case "with":
      for (const child of children(expr)) check(text, child);
      return "vector";
  }
}

/** Like `check`, for a place that takes only certain types. */
function expect(text: string, expr: Expr, allowed: Type[], where: string): Type {
  const type = check(text, expr);
  if (allowed.includes(type)) return type;
  const wanted = allowed.map((one) => NAMES[one]).join(" or ");
  throw parseError(text, expr.at, `${where} takes ${wanted}, not ${NAMES[type]}`);
}

/** A selector that a series without labels would match would read the whole database. */
function checkSelector(text: string, expr: Extract<Expr, { kind: "selector" }>): Type {
  if (expr.filters.some((group) => group.some((matcher) => !matchesEmpty(matcher)))) return "vector";
  throw parseError(text, expr.at, "a selector needs at least one matcher that does not match the empty string");
}

function matchesEmpty({ op, value }: Matcher): boolean {
  const matches = op.endsWith("~") ? compileRegex(value)("") : value === "";
  return matches === !op.startsWith("!");
}

/** Brackets, offset and @ are one node for the parser; here it is decided which of them may stand around what. */
function checkRollup(text: string, expr: RollupExpr): Type {
  if (expr.moment) checkMoment(text, expr.moment);
  const isSubquery = expr.step !== undefined || expr.inheritStep === true;
  if (isSubquery) {
    if (expr.boundary) throw parseError(text, expr.at, `${expr.boundary} modifier is not supported for subqueries`);
    expect(text, expr.arg, ["scalar", "vector"], "a subquery");
    return "matrix";
  }
  const { arg } = expr;
  const onSelector = arg.kind === "selector" || (arg.kind === "rollup" && arg.arg.kind === "selector");
  const type = check(text, arg);
  if (expr.window) {
    if (onSelector && type === "vector") return "matrix";
    throw parseError(text, expr.at, "brackets follow a selector; around an expression a subquery needs a step: [5m:]");
  }
  if (onSelector || (type === "matrix" && !expr.boundary)) return type;
  if (expr.boundary) throw parseError(text, expr.at, `${expr.boundary} follows a selector, with a range or without`);
  throw parseError(text, expr.at, "offset and @ follow a selector or a subquery");
}

/** `@` takes a moment that is known before the query runs. */
function checkMoment(text: string, moment: Expr): void {
  const inner = moment.kind === "negate" ? moment.arg : moment;
  const known = inner.kind === "call" && /^(start|end)$/i.test(inner.name) && inner.args.length === 0;
  const finite = inner.kind === "duration" || (inner.kind === "number" && Number.isFinite(inner.value));
  if (!known && !finite)
    throw parseError(text, moment.at, "after @ a number, a duration, start() or end() is expected");
}

function checkCall(text: string, expr: CallExpr): Type {
  const name = expr.name.toLowerCase();
  const signature = Object.hasOwn(SIGNATURES, name) ? SIGNATURES[name] : undefined;
  if (signature === undefined) {
    const near = nearest(expr.name, Object.keys(SIGNATURES));
    throw parseError(text, expr.at, `there is no function ${expr.name}${near ? `; did you mean ${near}?` : ""}`);
  }
  const [left = "", result = ""] = signature.split(">");
  const params = left.split(" ").filter((param) => param !== "");
  checkCount(text, expr, params);
  for (const [i, arg] of expr.args.entries()) {
    const param = params[Math.min(i, params.length - 1)] ?? "v";
    if (param.startsWith("l")) {
      expectLabels(text, arg, name);
      continue;
    }
    expect(text, arg, [TYPES[param.charAt(0)] ?? "vector"], `argument ${i + 1} of ${name}()`);
  }
  return TYPES[result.trim()] ?? "vector";
}

/** Matchers of labels only: what they select is found by the series they are added to, so they may match everything. */
function expectLabels(text: string, arg: Expr, name: string): void {
  if (arg.kind === "selector") return;
  throw parseError(text, arg.at, `${name}() takes matchers of labels such as {version=~".+"} here`);
}

function checkCount(text: string, expr: CallExpr, params: string[]): void {
  const least = params.filter((param) => param.length === 1).length;
  const most = params.at(-1)?.endsWith("*") ? Number.POSITIVE_INFINITY : params.length;
  const got = expr.args.length;
  if (got >= least && got <= most) return;
  const range = most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`;
  throw parseError(text, expr.at, `${expr.name}() takes ${most === least ? least : range} arguments, not ${got}`);
}

/** Aggregations that take something before the vector. */
const PARAMETERS: Record<string, Type> = {
  bottomk: "scalar",
  count_values: "string",
  limit_ratio: "scalar",
  limitk: "scalar",
  quantile: "scalar",
  topk: "scalar",
};

function checkAggregate(text: string, expr: AggregateExpr): Type {
  const parameter = PARAMETERS[expr.name];
  const wanted = parameter ? 2 : 1;
  if (expr.args.length !== wanted) {
    throw parseError(
      text,
      expr.at,
      `${expr.name}() takes ${wanted} argument${wanted > 1 ? "s" : ""}, not ${expr.args.length}`,
    );
  }
  const [first, second] = expr.args;
  if (parameter && first) expect(text, first, [parameter], `the parameter of ${expr.name}()`);
  const arg = parameter ? second : first;
  if (arg) expect(text, arg, ["vector"], `${expr.name}()`);
  return "vector";
}

/** Two numbers give a number; anything with a vector gives a vector. */
function checkBinary(text: string, expr: BinaryExpr): Type {
  const left = expect(text, expr.left, ["scalar", "vector"], expr.op);
  const right = expect(text, expr.right, ["scalar", "vector"], expr.op);
  const kind = OPERATORS[expr.op]?.kind;
  const vectors = left === "vector" && right === "vector";
  if (kind === "set" && !vectors) throw parseError(text, expr.at, `${expr.op} works between instant vectors only`);
  if (expr.group && !vectors) throw parseError(text, expr.at, "on() and ignoring() work between instant vectors only");
  const both = expr.group?.op === "on" && expr.join?.labels.find((label) => expr.group?.labels.includes(label));
  if (both) throw parseError(text, expr.at, `the label ${both} is in on() and in ${expr.join?.op}() as well`);
  if (kind === "compare" && left === "scalar" && right === "scalar" && !expr.bool) {
    throw parseError(text, expr.at, "comparisons between numbers must use bool");
  }
  return left === "scalar" && right === "scalar" ? "scalar" : "vector";
}
