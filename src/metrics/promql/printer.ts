import type { Matcher } from "../source.ts";
import { type Expr, type Modifier, metricName, type RollupExpr, type SelectorExpr } from "./ast.ts";
import { MULTIPLY, OPERATORS, reservedAfterOperator } from "./grammar.ts";
import { formatShort } from "./numbers.ts";

/** The tree as text that parses to the same tree. */
export function print(expr: Expr): string {
  switch (expr.kind) {
    case "number":
      return expr.text ?? formatShort(expr.value);
    case "string":
      return quote(expr.value);
    case "duration":
      return expr.duration.text;
    case "selector":
      return printSelector(expr);
    case "rollup":
      return printRollup(expr);
    case "call":
      return `${name(expr.name)}(${printArgs(expr.args)})${expr.keepMetricNames ? " keep_metric_names" : ""}`;
    case "aggregate": {
      const by = expr.modifier ? ` ${printModifier(expr.modifier)}` : "";
      return `${expr.name}(${printArgs(expr.args)})${by}${expr.limit === undefined ? "" : ` limit ${expr.limit}`}`;
    }
    case "binary":
      return expr.keepMetricNames ? `(${printBinary(expr)}) keep_metric_names` : printBinary(expr);
    case "negate":
      return `-${operand(expr.arg, expr.arg.kind === "negate")}`;
    case "parens":
      return `(${printArgs(expr.args)})`;
    case "with":
      return `WITH (${expr.templates.map((t) => `${t.name} = ${print(t.body)}`).join(", ")}) ${print(expr.body)}`;
  }
}

function printArgs(args: Expr[]): string {
  return args.map(print).join(", ");
}

function printBinary(expr: Extract<Expr, { kind: "binary" }>): string {
  const words = [`${expr.op}${expr.bool ? "bool" : ""}`];
  if (expr.group) words.push(printModifier(expr.group));
  if (expr.join) words.push(printModifier(expr.join));
  if (expr.prefix !== undefined) words.push(`prefix ${quote(expr.prefix)}`);
  words.push(...printFills(expr));
  return `${operand(expr.left, minusWouldSpread(expr))} ${words.join(" ")} ${operand(expr.right, needsParensOnRight(expr))}`;
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
function operand(expr: Expr, always: boolean): string {
  const parens =
    always || expr.kind === "binary" || expr.kind === "negate" || (expr.kind === "rollup" && rollupNeedsParens(expr));
  return parens ? `(${print(expr)})` : print(expr);
}

/** `a offset 5m + b` would be read right, but not by people. */
function rollupNeedsParens(expr: RollupExpr): boolean {
  if (expr.arg.kind === "binary" && expr.arg.keepMetricNames) return true;
  return expr.offset !== undefined || expr.moment !== undefined;
}

function printRollup(expr: RollupExpr): string {
  const arg = argNeedsParens(expr.arg) ? `(${print(expr.arg)})` : print(expr.arg);
  const offset = expr.offset ? ` offset ${expr.offset.text}` : "";
  return `${arg}${printWindow(expr)}${offset}${expr.moment ? printMoment(expr.moment) : ""}`;
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

function printMoment(moment: Expr): string {
  // One with an offset of its own too: without parentheses that would be the offset of the whole.
  const parens = moment.kind === "binary" || moment.kind === "negate" || moment.kind === "rollup";
  return parens ? ` @ (${print(moment)})` : ` @ ${print(moment)}`;
}

/** The name goes in front of the braces when every alternative has the same one. */
function printSelector(selector: SelectorExpr): string {
  const metric = metricName(selector);
  // An empty name is a filter like any other: there is no way to write it in front.
  if (!metric) return `{${selector.filters.map(printGroup).join(" or ")}}`;
  const groups = selector.filters.map((group) => group.slice(1)).filter((group) => group.length > 0);
  const filters = groups.length === 0 ? "" : `{${groups.map(printGroup).join(" or ")}}`;
  return `${name(metric)}${filters}`;
}

function printGroup(group: Matcher[]): string {
  return group.map((m) => `${name(m.name)}${m.op}${quote(m.value)}`).join(",");
}

function printModifier(modifier: Modifier): string {
  const labels = modifier.labels.map((label) =>
    label === "*" && modifier.op.startsWith("group_") ? label : name(label),
  );
  return `${modifier.op}(${labels.join(",")})`;
}

/** A name with whatever the lexer would not take for part of it escaped. */
function name(text: string): string {
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
