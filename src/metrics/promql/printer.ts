import type { Matcher } from "../source.ts";
import { type Dialect, type Expr, type Modifier, metricName, type RollupExpr, type SelectorExpr } from "./ast.ts";
import { MULTIPLY, OPERATORS, reservedAfterOperator } from "./grammar.ts";
import { formatShort } from "./numbers.ts";

/** The tree as text that parses to the same tree in that dialect. */
export function print(expr: Expr, dialect: Dialect = "metricsql"): string {
  switch (expr.kind) {
    case "number":
      return expr.text ?? formatShort(expr.value);
    case "string":
      return quote(expr.value);
    case "duration":
      return expr.duration.text;
    case "selector":
      return printSelector(expr, dialect);
    case "rollup":
      return printRollup(expr, dialect);
    case "call": {
      // Without a name it is a union.
      const called = expr.name && name(expr.name, dialect);
      return `${called}(${printArgs(expr.args, dialect)})${expr.keepMetricNames ? " keep_metric_names" : ""}`;
    }
    case "aggregate": {
      const by = expr.modifier ? ` ${printModifier(expr.modifier, dialect)}` : "";
      return `${expr.name}(${printArgs(expr.args, dialect)})${by}${expr.limit === undefined ? "" : ` limit ${expr.limit}`}`;
    }
    case "binary":
      return expr.keepMetricNames ? `(${printBinary(expr, dialect)}) keep_metric_names` : printBinary(expr, dialect);
    case "negate":
      return `-${operand(expr.arg, expr.arg.kind === "negate", dialect)}`;
    case "parens":
      return `(${printArgs(expr.args, dialect)})`;
    case "with":
      // Only MetricsQL has them.
      return `WITH (${expr.templates.map((t) => `${t.name} = ${print(t.body)}`).join(", ")}) ${print(expr.body)}`;
  }
}

function printArgs(args: Expr[], dialect: Dialect): string {
  return args.map((arg) => print(arg, dialect)).join(", ");
}

function printBinary(expr: Extract<Expr, { kind: "binary" }>, dialect: Dialect): string {
  const parts = [`${expr.op}${expr.bool ? "bool" : ""}`];
  if (expr.group) parts.push(printModifier(expr.group, dialect));
  if (expr.join) parts.push(printModifier(expr.join, dialect));
  if (expr.prefix !== undefined) parts.push(`prefix ${quote(expr.prefix)}`);
  parts.push(...printFills(expr));
  const left = operand(expr.left, minusWouldSpread(expr), dialect);
  return `${left} ${parts.join(" ")} ${operand(expr.right, needsParensOnRight(expr), dialect)}`;
}

/** `-2 ^ x` is `-(2 ^ x)`, so a negative number before a strong operator needs parentheses. */
function minusWouldSpread({ left, op }: Extract<Expr, { kind: "binary" }>): boolean {
  return left.kind === "number" && hasMinus(left.value) && (OPERATORS[op]?.priority ?? 0) >= MULTIPLY;
}

/** 0 may have one, too. */
function hasMinus(value: number): boolean {
  return value < 0 || Object.is(value, -0);
}

function printFills({ fillLeft, fillRight }: Extract<Expr, { kind: "binary" }>): string[] {
  if (fillLeft !== undefined && Object.is(fillLeft, fillRight)) return [`fill(${formatShort(fillLeft)})`];
  const fills: string[] = [];
  if (fillLeft !== undefined) fills.push(`fill_left(${formatShort(fillLeft)})`);
  if (fillRight !== undefined) fills.push(`fill_right(${formatShort(fillRight)})`);
  return fills;
}

function needsParensOnRight({ left, right, keepMetricNames }: Extract<Expr, { kind: "binary" }>): boolean {
  // A name right after a string would be read as a template that gives a string.
  if (right.kind === "selector") return left.kind === "string" || reservedAfterOperator(metricName(right) ?? "");
  if (right.kind !== "call") return false;
  return reservedAfterOperator(right.name) || right.keepMetricNames === true || keepMetricNames === true;
}

/** Parentheses wherever another reading would be possible, so that priorities need not be known to read the text. */
function operand(expr: Expr, always: boolean, dialect: Dialect): string {
  const parens =
    always || expr.kind === "binary" || expr.kind === "negate" || (expr.kind === "rollup" && rollupNeedsParens(expr));
  return parens ? `(${print(expr, dialect)})` : print(expr, dialect);
}

/** `a offset 5m + b` would be read right, but not by people. */
function rollupNeedsParens(expr: RollupExpr): boolean {
  if (expr.arg.kind === "binary" && expr.arg.keepMetricNames) return true;
  return expr.offset !== undefined || expr.moment !== undefined || expr.boundary !== undefined;
}

function printRollup(expr: RollupExpr, dialect: Dialect): string {
  const arg = argNeedsParens(expr.arg) ? `(${print(expr.arg, dialect)})` : print(expr.arg, dialect);
  const offset = expr.offset ? ` offset ${expr.offset.text}` : "";
  const boundary = expr.boundary ? ` ${expr.boundary}` : "";
  return `${arg}${printWindow(expr)}${boundary}${offset}${expr.moment ? printMoment(expr.moment, dialect) : ""}`;
}

function argNeedsParens(arg: Expr): boolean {
  if (arg.kind === "number") return arg.text === undefined && (hasMinus(arg.value) || Number.isNaN(arg.value));
  if (arg.kind === "aggregate") return arg.modifier !== undefined;
  return arg.kind === "rollup" || arg.kind === "binary" || arg.kind === "negate";
}

function printWindow(expr: RollupExpr): string {
  if (!expr.window && !expr.step && !expr.inheritStep) return "";
  const step = expr.inheritStep ? ":" : "";
  return `[${expr.window?.text ?? ""}${expr.step ? `:${expr.step.text}` : step}]`;
}

function printMoment(moment: Expr, dialect: Dialect): string {
  // One with an offset of its own too: without parentheses that would be the offset of the whole.
  const parens = moment.kind === "binary" || moment.kind === "negate" || moment.kind === "rollup";
  return parens ? ` @ (${print(moment, dialect)})` : ` @ ${print(moment, dialect)}`;
}

/** The name goes in front of the braces when every alternative has the same one. */
function printSelector(selector: SelectorExpr, dialect: Dialect): string {
  const metric = metricName(selector);
  const print = (groups: Matcher[][]): string => groups.map((group) => printGroup(group, dialect)).join(" or ");
  // An empty name is a filter like any other: there is no way to write it in front. Nor is there for one in quotes.
  if (!metric || (dialect === "promql" && !PLAIN.test(metric))) return `{${print(selector.filters)}}`;
  const groups = selector.filters.map((group) => group.slice(1)).filter((group) => group.length > 0);
  return `${name(metric, dialect)}${groups.length === 0 ? "" : `{${print(groups)}}`}`;
}

function printGroup(group: Matcher[], dialect: Dialect): string {
  return group.map((m) => `${name(m.name, dialect)}${m.op}${quote(m.value)}`).join(",");
}

function printModifier(modifier: Modifier, dialect: Dialect): string {
  const labels = modifier.labels.map((label) =>
    label === "*" && modifier.op.startsWith("group_") ? label : name(label, dialect),
  );
  return `${modifier.op}(${labels.join(",")})`;
}

const PLAIN = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;

/** A name with whatever the lexer would not take for part of it escaped; Prometheus knows only quotes for that. */
function name(text: string, dialect: Dialect): string {
  if (text === "" || (dialect === "promql" && !PLAIN.test(text))) return quote(text);
  return Array.from(text)
    .map((char, i) => {
      if (/[\p{L}_:]/u.test(char) || (i > 0 && /[\p{Nd}.]/u.test(char))) return char;
      const code = char.codePointAt(0) ?? 0;
      if (/\P{C}/u.test(char)) return `\\${char}`;
      return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
    })
    .join("");
}

/** A string as Go quotes it. */
function quote(text: string): string {
  const body = text.replace(/["\\\p{C}]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0;
    const short = {
      '"': '\\"',
      "\\": "\\\\",
      "\n": "\\n",
      "\t": "\\t",
      "\r": "\\r",
      "\b": "\\b",
      "\f": "\\f",
      "\v": "\\v",
      "\x07": "\\a",
    }[char];
    if (short !== undefined) return short;
    return code < 128 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return `"${body}"`;
}
