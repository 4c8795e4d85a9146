import type { Duration, RollupExpr } from "./ast.ts";
import { advance, type Cursor, expectSign, isSign, unexpected } from "./cursor.ts";
import { durationMs } from "./durations.ts";
import { parseError } from "./errors.ts";
import { nextToken, skipBlank } from "./lexer.ts";

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

export function parseWindow(c: Cursor): Pick<RollupExpr, "window" | "step" | "inheritStep"> {
  const from = skipBlank(c.text, c.token.end);
  INSIDE.lastIndex = from;
  const found = INSIDE.exec(c.text);
  const [all = "", window = "", step] = found ?? [];
  c.token = nextToken(c.text, from + all.length, c.dialect);
  const rollup: Pick<RollupExpr, "window" | "step" | "inheritStep"> = {};
  if (window.trim() !== "") {
    const parsed = parseInside(c, window.trim(), from);
    if (parsed) rollup.window = parsed;
  } else if (step === undefined || c.dialect === "promql") throw unexpected(c, "a duration such as 5m");
  if (step?.trim() === "") rollup.inheritStep = true;
  else if (step !== undefined) {
    const parsed = parseInside(c, step.trim(), from + window.length + 1);
    if (parsed) rollup.step = parsed;
  }
  expectSign(c, "]");
  return rollup;
}

function parseInside(c: Cursor, text: string, at: number): Duration | undefined {
  if (c.dialect === "metricsql" && INTERVAL.test(text)) return undefined;
  if (c.dialect === "metricsql" && /^[\p{L}_][\p{L}\p{Nd}_.]*$/u.test(text)) return { text, template: true };
  const parsed = checked(c, text, at);
  if ((durationMs(text, 1) ?? 0) < 0 || text.startsWith("-"))
    throw parseError(c.text, at, "a window cannot be negative");
  if (c.dialect === "promql" && durationMs(text, 1) === 0)
    throw parseError(c.text, at, "a window must be longer than 0");
  return parsed;
}
