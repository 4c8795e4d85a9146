import { children, type Duration, type Expr, type RollupExpr } from "./ast.ts";
import { advance, type Cursor, expectSign, isSign, unexpected } from "./cursor.ts";
import { durationMs } from "./durations.ts";
import { parseError, QueryError } from "./errors.ts";
import { nextToken, skipBlank } from "./lexer.ts";
import { lengthMs, lengthPart } from "./strict/lengths.ts";

/** Grafana's placeholders, for queries pasted from a dashboard. Around a window they mean "as long as the step". */
const INTERVAL = /^\$__(rate_)?interval$/;
const STRICT = /^-?(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$|^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/;

/** A duration where only a duration can stand; `signed` allows a minus in front. */
export function parseDuration(c: Cursor, signed: boolean): Duration {
  const minus = signed && (isSign(c, "-") || isSign(c, "+")) ? advance(c).text : "";
  const sign = minus === "-" ? "-" : "";
  const { type, text, at } = c.token;
  if (type === "ident" && c.dialect === "metricsql") {
    advance(c);
    if (INTERVAL.test(text)) return { text: `${sign}1i` };
    return { text, template: true };
  }
  if (type !== "duration" && type !== "number") throw unexpected(c, "a duration such as 5m");
  advance(c);
  return checked(c, `${sign}${text}`, at);
}

function checked(c: Cursor, text: string, at: number): Duration {
  const value = durationMs(text, 1);
  if (value === undefined || !Number.isFinite(value))
    throw parseError(c.text, at, `${JSON.stringify(text)} is no duration`);
  if (c.dialect === "promql" && !STRICT.test(text)) {
    throw parseError(c.text, at, `${JSON.stringify(text)} is no duration in the promql dialect`);
  }
  return { text };
}

/** What stands between brackets. Read from the text itself, because `:` is part of names everywhere else. */
const INSIDE = /([^\]:"'`([{]*)(?::([^\]:"'`([{]*))?/y;

type Brackets = Pick<RollupExpr, "window" | "step" | "inheritStep">;

/** `parse` reads an expression, which is what the strict dialect takes between brackets. */
export function parseWindow(c: Cursor, parse: () => Expr): Brackets {
  return c.dialect === "promql" ? parseComputedWindow(c, parse) : parseWrittenWindow(c);
}

function parseComputedWindow(c: Cursor, parse: () => Expr): Brackets {
  c.inWindow = true;
  expectSign(c, "[");
  const brackets: Brackets = { window: parseLength(c, parse, 1) };
  if (isSign(c, ":")) {
    advance(c);
    if (isSign(c, "]")) brackets.inheritStep = true;
    else brackets.step = parseLength(c, parse, 1);
  }
  c.inWindow = false;
  expectSign(c, "]");
  return brackets;
}

/** A duration that may be computed, of the strict dialect. What is known already must be at least `least_ms`. */
export function parseLength(c: Cursor, parse: () => Expr, least_ms = Number.NEGATIVE_INFINITY): Duration {
  const { at } = c.token;
  const expr = parse();
  const text = c.text.slice(at, c.token.at).trim();
  if (expr.kind === "duration" || expr.kind === "number") checked(c, text, expr.at);
  const foreign = find(expr, (part) => !lengthPart(part));
  if (foreign) {
    const wanted =
      "a duration such as 5m was expected, or one computed from durations, step(), range(), min_of(), max_of()";
    throw parseError(c.text, foreign.at, wanted);
  }
  if (find(expr, (part) => part.kind === "call" && /^(step|range)$/i.test(part.name))) return { text, computed: expr };
  const length_ms = known(c, expr, at);
  if (length_ms < least_ms)
    throw parseError(c.text, at, `a window must be longer than 0${length_ms < 0 ? ", not negative" : ""}`);
  return expr.kind === "duration" || expr.kind === "number" ? { text } : { text, computed: expr };
}

function find(expr: Expr, wanted: (part: Expr) => boolean): Expr | undefined {
  if (wanted(expr)) return expr;
  for (const child of children(expr)) {
    const found = find(child, wanted);
    if (found) return found;
  }
  return undefined;
}

/** Reports a duration that cannot be computed with its position, which is known only here. */
function known(c: Cursor, expr: Expr, at: number): number {
  try {
    return lengthMs(expr, { start_ms: 0, end_ms: 0, step_ms: 0 });
  } catch (error) {
    if (error instanceof QueryError) throw parseError(c.text, at, error.message);
    throw error;
  }
}

function parseWrittenWindow(c: Cursor): Brackets {
  const from = skipBlank(c.text, c.token.end);
  INSIDE.lastIndex = from;
  const found = INSIDE.exec(c.text);
  const [all = "", window = "", step] = found ?? [];
  c.token = nextToken(c.text, from + all.length, c.dialect);
  const rollup: Brackets = {};
  if (window.trim() !== "") {
    const parsed = parseInside(c, window.trim(), from);
    if (parsed) rollup.window = parsed;
  } else if (step === undefined) throw unexpected(c, "a duration such as 5m");
  if (step?.trim() === "") rollup.inheritStep = true;
  else if (step !== undefined) {
    const parsed = parseInside(c, step.trim(), from + window.length + 1);
    if (parsed) rollup.step = parsed;
  }
  expectSign(c, "]");
  return rollup;
}

function parseInside(c: Cursor, text: string, at: number): Duration | undefined {
  if (INTERVAL.test(text)) return undefined;
  if (/^[\p{L}_][\p{L}\p{Nd}_.]*$/u.test(text)) return { text, template: true };
  const parsed = checked(c, text, at);
  if ((durationMs(text, 1) ?? 0) < 0 || text.startsWith("-"))
    throw parseError(c.text, at, "a window cannot be negative");
  return parsed;
}
