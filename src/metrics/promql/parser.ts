import type { AggregateExpr, BinaryExpr, Dialect, Expr, Modifier, RollupExpr, Template } from "./ast.ts";
import { advance, type Cursor, expectSign, isEnd, isKeyword, isSign, peek, unexpected } from "./cursor.ts";
import { parseError } from "./errors.ts";
import { isAggregate } from "./functions/names.ts";
import { LOWEST, MULTIPLY, operator, POWER, reservedAfterOperator } from "./grammar.ts";
import { nextToken, type Token } from "./lexer.ts";
import { parseNumber } from "./numbers.ts";
import { parseDuration, parseLength, parseWindow } from "./parser-durations.ts";
import { parseFilters, parseStringParts } from "./parser-selector.ts";

/** How many operators a query may have for each level of nesting it may have. */
const OPERATORS_PER_LEVEL = 10;

/**
 * A Pratt parser: `parseExpr` takes operands and operators down to the priority it is given. What comes out is still
 * raw: templates, parentheses and label filters are worked on afterwards, in `templates.ts` and `simplify.ts`, so that
 * this file only has to know how things are written.
 */
export function parseText(text: string, dialect: Dialect, maxDepth: number): Expr {
  const c: Cursor = { text, dialect, maxDepth, token: nextToken(text, 0, dialect), depth: 0, operators: 0 };
  if (isEnd(c)) throw parseError(text, 0, "the query is empty");
  const expr = parseExpr(c, LOWEST);
  if (!isEnd(c)) throw unexpected(c, "an operator or the end of the query");
  return expr;
}

/**
 * The operators that bind at least as strongly as `lowest`. The depth is counted here, since every way into a deeper
 * expression comes through, and a query must not be able to overflow the stack.
 */
function parseExpr(c: Cursor, lowest: number): Expr {
  c.depth++;
  if (c.depth > c.maxDepth)
    throw parseError(c.text, c.token.at, `the query is nested deeper than ${c.maxDepth} levels`);
  let left = parseOperand(c, lowest);
  for (;;) {
    const op = currentOperator(c);
    if (op === undefined || op.priority < lowest) break;
    left = parseBinary(c, left, op);
  }
  c.depth--;
  return left;
}

/** The operator at hand; `default`, `if` and `ifnot` are names in the strict dialect. */
function currentOperator(c: Cursor): { name: string; priority: number; right?: true; kind: string } | undefined {
  if (c.token.type !== "sign" && c.token.type !== "ident") return undefined;
  const found = operator(c.token.text);
  if (!found || (c.dialect === "promql" && found.kind === "choice")) return undefined;
  return { name: c.token.text.toLowerCase(), ...found };
}

/** One operator with its modifiers and its right side. */
function parseBinary(
  c: Cursor,
  left: Expr,
  op: { name: string; priority: number; right?: true; kind: string },
): BinaryExpr {
  // A chain of operators is a tree as deep as the chain is long, whatever the parentheses.
  c.operators++;
  const most = c.maxDepth * OPERATORS_PER_LEVEL;
  if (c.operators > most) throw parseError(c.text, c.token.at, `the query has more than ${most} operators`);
  const at = advance(c).at;
  const binary: BinaryExpr = { kind: "binary", at, op: op.name, left, right: left };
  if (isKeyword(c, "bool")) {
    if (op.kind !== "compare") throw parseError(c.text, c.token.at, `bool cannot be used with ${op.name}`);
    advance(c);
    binary.bool = true;
  }
  parseMatching(c, binary, op.kind);
  binary.right = parseExpr(c, op.right ? op.priority : op.priority + 1);
  if (c.dialect === "metricsql" && isKeyword(c, "keep_metric_names")) {
    advance(c);
    binary.keepMetricNames = true;
  }
  return binary;
}

/** `on (a) group_left (b) prefix "c"`, each part only after the one before it. */
function parseMatching(c: Cursor, binary: BinaryExpr, kind: string): void {
  if (isKeyword(c, "on") || isKeyword(c, "ignoring")) binary.group = parseModifier(c, false);
  if (binary.group && (isKeyword(c, "group_left") || isKeyword(c, "group_right"))) {
    if (kind === "set") throw parseError(c.text, c.token.at, `${c.token.text} cannot be used with ${binary.op}`);
    binary.join = parseModifier(c, c.dialect === "metricsql");
    if (isKeyword(c, "prefix") && c.dialect === "metricsql" && prefixFollows(c)) {
      advance(c);
      binary.prefixParts = parseStringParts(c);
    }
  }
  parseFills(c, binary);
}

/** `prefix` is a modifier only when a string follows; otherwise it is a metric of that name. */
function prefixFollows(c: Cursor): boolean {
  const next = peek(c);
  return next.type === "string" || (next.type === "ident" && operator(next.text) === undefined);
}

function peekSign(c: Cursor, sign: string): boolean {
  const next = peek(c);
  return next.type === "sign" && next.text === sign;
}

/** `fill(0)` is both sides at once. */
function parseFills(c: Cursor, binary: BinaryExpr): void {
  while (c.token.type === "ident" && /^fill(_left|_right)?$/i.test(c.token.text) && peekSign(c, "(")) {
    const which = advance(c).text.toLowerCase();
    expectSign(c, "(");
    const negative = isSign(c, "-");
    if (negative || isSign(c, "+")) advance(c);
    const value = parseNumber(c.token.text);
    if (value === undefined) throw unexpected(c, "a number");
    advance(c);
    expectSign(c, ")");
    const signed = negative ? -value : value;
    if (which !== "fill_right") binary.fillLeft = signed;
    if (which !== "fill_left") binary.fillRight = signed;
  }
}

/** `by (a, b)`, `group_left`, `on ()`. */
function parseModifier(c: Cursor, star: boolean): Modifier {
  const op = advance(c).text.toLowerCase() as Modifier["op"];
  if (op.startsWith("group_") && !isSign(c, "(")) return { op, labels: [] };
  expectSign(c, "(");
  if (star && isSign(c, "*")) {
    advance(c);
    expectSign(c, ")");
    return { op, labels: ["*"] };
  }
  return { op, labels: parseNames(c) };
}

/** Names up to the closing parenthesis, a last comma allowed. */
function parseNames(c: Cursor): string[] {
  const names: string[] = [];
  while (!isSign(c, ")")) {
    if (c.token.type !== "ident" && c.token.type !== "string") throw unexpected(c, "a label name");
    names.push(advance(c).text);
    if (!isSign(c, ",")) break;
    advance(c);
  }
  expectSign(c, ")");
  return names;
}

/** An operand with what may follow it: brackets, offset, @. */
function parseOperand(c: Cursor, lowest: number): Expr {
  if (isSign(c, "-") || isSign(c, "+")) return parseSigned(c, lowest);
  if (c.dialect === "metricsql" && isKeyword(c, "with") && peekSign(c, "(")) return parseWith(c);
  let expr = parseAtom(c);
  while (isSign(c, "[") || isSign(c, "@") || isKeyword(c, "offset") || boundaryAt(c)) {
    const rolled: RollupExpr = parseSuffixes(c, expr);
    expr = rolled;
    if (c.dialect === "metricsql") break;
  }
  return expr;
}

/** Loosely bound: `-a * b` is `-(a * b)` in MetricsQL, and `-a ^ b` is `-(a ^ b)` in both. */
function parseSigned(c: Cursor, lowest: number): Expr {
  const { at, text } = advance(c);
  const arg = parseExpr(c, Math.max(c.dialect === "promql" ? POWER : MULTIPLY, lowest));
  if (text === "+") return arg;
  if (c.dialect === "promql") return { kind: "negate", at, arg };
  return { kind: "binary", at, op: "-", left: { kind: "number", at, value: 0, text: "0" }, right: arg };
}

/** MetricsQL takes offset and @ once each in any order; the strict dialect may nest them, and `check.ts` decides. */
function parseSuffixes(c: Cursor, arg: Expr): RollupExpr {
  const rollup: RollupExpr = { kind: "rollup", at: arg.at, arg };
  if (isSign(c, "["))
    Object.assign(
      rollup,
      parseWindow(c, () => parseExpr(c, LOWEST)),
    );
  for (;;) {
    if (isSign(c, "@") && !rollup.moment) {
      advance(c);
      rollup.moment = parseSignedAtom(c);
    } else if (isKeyword(c, "offset") && !rollup.offset) {
      advance(c);
      rollup.offset = c.dialect === "promql" ? parseLength(c, () => parseSignedAtom(c)) : parseDuration(c, true);
    } else if (boundaryAt(c)) parseBoundary(c, rollup);
    else return rollup;
  }
}

/** `anchored` or `smoothed`, which MetricsQL does not have. */
function boundaryAt(c: Cursor): RollupExpr["boundary"] {
  if (c.dialect !== "promql") return undefined;
  return (["anchored", "smoothed"] as const).find((word) => isKeyword(c, word));
}

function parseBoundary(c: Cursor, rollup: RollupExpr): void {
  const boundary = boundaryAt(c);
  const { at } = advance(c);
  if (rollup.boundary && rollup.boundary !== boundary)
    throw parseError(c.text, at, "anchored and smoothed modifiers cannot be used together");
  if (boundary) rollup.boundary = boundary;
}

/** Nothing that follows belongs to it: `m @ -1 offset 5m` has both, and `m offset -step() * 2` is twice a series. */
function parseSignedAtom(c: Cursor): Expr {
  if (!isSign(c, "-") && !isSign(c, "+")) return parseAtom(c);
  const { at, text } = advance(c);
  const arg = parseAtom(c);
  if (text === "+") return arg;
  if (c.dialect === "promql") return { kind: "negate", at, arg };
  return { kind: "binary", at, op: "-", left: { kind: "number", at, value: 0, text: "0" }, right: arg };
}

/** `inf` and `nan` are numbers unless they are called. */
function parseAtom(c: Cursor): Expr {
  const { type, text, at } = c.token;
  if (type === "duration") return { kind: "duration", at, duration: parseDuration(c, false) };
  if (type === "string") {
    advance(c);
    return { kind: "string", at, value: text };
  }
  if (type === "number" || /^(inf|nan)$/i.test(text)) {
    if (type === "ident" && peekSign(c, "(")) return parseIdent(c);
    const value = parseNumber(text);
    const foreign = c.dialect === "promql" && /^(?!0x).*[kgtmib]$/i.test(text) && type === "number";
    if (value === undefined || foreign) throw unexpected(c, "a number");
    advance(c);
    return { kind: "number", at, value, text };
  }
  if (type === "ident") return parseIdent(c);
  if (isSign(c, "(")) return parseParens(c);
  if (isSign(c, "{")) return { kind: "selector", at, filters: [], raw: parseFilters(c, undefined) };
  throw unexpected(c, "an expression");
}

/** Several expressions in parentheses are a union, which `simplify.ts` makes of them. */
function parseParens(c: Cursor): Expr {
  const { at } = c.token;
  const args = parseArgs(c);
  const [only] = args;
  if (c.dialect === "promql" && args.length !== 1) throw parseError(c.text, at, "parentheses hold one expression");
  if (only?.kind === "binary" && args.length === 1 && isKeyword(c, "keep_metric_names")) {
    advance(c);
    only.keepMetricNames = true;
  }
  return { kind: "parens", at, args };
}

/**
 * A name begins a call, an aggregation or a selector, depending on the next token. Keywords are names wherever they
 * cannot be anything else, because metrics called `by` or `with` exist.
 */
function parseIdent(c: Cursor): Expr {
  const next = peek(c);
  const name = c.token.text;
  if (/^\$__(rate_)?interval$/.test(name))
    return { kind: "duration", at: c.token.at, duration: parseDuration(c, false) };
  if (name.startsWith("$")) throw unexpected(c, "an expression");
  if (isAggregate(name, c.dialect) && (isOpening(next) || /^(by|without)$/i.test(next.text))) return parseAggregate(c);
  if (isOpening(next)) return parseCall(c);
  const { at } = advance(c);
  const named = { label: "__name__", op: "=" as const, value: [name], at };
  if (isSign(c, "{")) return { kind: "selector", at, filters: [], raw: parseFilters(c, named) };
  return { kind: "selector", at, filters: [], raw: [[named]] };
}

function isOpening(token: Token): boolean {
  return token.type === "sign" && token.text === "(";
}

/** Whether the function exists is checked on the whole tree, after templates had a chance to define it. */
function parseCall(c: Cursor): Expr {
  const { at, text: name } = advance(c);
  if (operator(name) || reservedAfterOperator(name) || /^(by|without)$/i.test(name)) {
    throw parseError(c.text, at, `${name} is a keyword and cannot be called`);
  }
  const args = parseArgs(c);
  if (c.dialect === "promql" || !isKeyword(c, "keep_metric_names")) return { kind: "call", at, name, args };
  advance(c);
  return { kind: "call", at, name, args, keepMetricNames: true };
}

/** The labels may stand before or after the arguments. */
function parseAggregate(c: Cursor): AggregateExpr {
  const { at, text } = advance(c);
  const aggregate: AggregateExpr = { kind: "aggregate", at, name: text.toLowerCase(), args: [] };
  if (!isSign(c, "(")) aggregate.modifier = parseModifier(c, false);
  aggregate.args = parseArgs(c);
  if (!aggregate.modifier && (isKeyword(c, "by") || isKeyword(c, "without")))
    aggregate.modifier = parseModifier(c, false);
  if (c.dialect === "metricsql" && isKeyword(c, "limit")) {
    advance(c);
    const limit = Number(c.token.text);
    if (c.token.type !== "number" || !Number.isInteger(limit)) throw unexpected(c, "a whole number");
    advance(c);
    aggregate.limit = limit;
  }
  return aggregate;
}

/** Expressions up to the closing parenthesis; MetricsQL allows a last comma. */
function parseArgs(c: Cursor): Expr[] {
  expectSign(c, "(");
  const args: Expr[] = [];
  while (!isSign(c, ")")) {
    args.push(parseExpr(c, LOWEST));
    if (!isSign(c, ",")) break;
    advance(c);
    if (isSign(c, ")") && c.dialect === "promql") throw unexpected(c, "an expression");
  }
  expectSign(c, ")");
  return args;
}

/** `WITH (name = expr, f(x) = expr) expr`. */
function parseWith(c: Cursor): Expr {
  const { at } = advance(c);
  expectSign(c, "(");
  const templates: Template[] = [];
  while (!isSign(c, ")")) {
    templates.push(parseTemplate(c));
    if (!isSign(c, ",")) break;
    advance(c);
  }
  expectSign(c, ")");
  const twice = templates.find((t, i) => templates.findIndex((other) => other.name === t.name) !== i);
  if (twice) throw parseError(c.text, twice.at, `the template ${twice.name} is defined twice`);
  return { kind: "with", at, templates, body: parseExpr(c, LOWEST) };
}

function parseTemplate(c: Cursor): Template {
  if (c.token.type !== "ident") throw unexpected(c, "the name of a template");
  const { text: name, at } = advance(c);
  let params: string[] = [];
  if (isSign(c, "(")) {
    advance(c);
    params = parseNames(c);
    if (new Set(params).size !== params.length)
      throw parseError(c.text, at, `the template ${name} names a parameter twice`);
  }
  expectSign(c, "=");
  return { name, params, body: parseExpr(c, LOWEST), at };
}
