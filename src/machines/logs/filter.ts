/** Which log lines a search wants: words, a level, and fields of JSON lines. */
import { type Level, readMessage, textOf } from "#core/log-line.ts";

export interface LogFilter {
  /** Every word is in the line, in upper or lower case. */
  text?: string;
  level?: Level;
  /** Tests of fields, such as `status>=500`; every one holds. */
  fields?: readonly string[];
}

export interface LogMatcher {
  /** What every wanted line contains, as bytes read one by one (latin1): a quick test before the exact one. */
  needle: RegExp | undefined;
  matches(message: string): boolean;
}

const FIELD = /^([^=!<>]{1,200})(!=|>=|<=|=|>|<)(.{0,1000})$/s;

interface FieldTest {
  name: string;
  operator: string;
  value: string;
}

/** `level=error`, `user.id!=7`, `status>=500`; undefined when it is none of these. */
export function parseField(text: string): FieldTest | undefined {
  const [, name, operator, value] = FIELD.exec(text) ?? [];
  if (name === undefined || operator === undefined || value === undefined) return undefined;
  if (operator in ORDERS && (value.trim() === "" || Number.isNaN(Number(value)))) return undefined;
  return { name: name.trim(), operator, value };
}

const ORDERS: Record<string, (a: number, b: number) => boolean> = {
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a >= b,
  "<=": (a, b) => a <= b,
};

export function compileFilter({ text = "", level, fields = [] }: LogFilter): LogMatcher {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const tests = fields.flatMap((field) => parseField(field) ?? []);
  return {
    needle: needleOf(words, tests, level),
    matches(message) {
      const hay = words.length > 0 ? message.toLowerCase() : "";
      if (!words.every((word) => hay.includes(word))) return false;
      if (level !== undefined && readMessage(message).level !== level) return false;
      return tests.length === 0 || holdsAll(message, tests);
    },
  };
}

function holdsAll(message: string, tests: readonly FieldTest[]): boolean {
  if (!message.trimStart().startsWith("{")) return false;
  try {
    const fields = JSON.parse(message) as Record<string, unknown>;
    return tests.every((test) => holds(fieldOf(fields, test.name), test));
  } catch {
    return false;
  }
}

function holds(found: unknown, { operator, value }: FieldTest): boolean {
  const is_same = found !== undefined && textOf(found) === value;
  if (operator === "=") return is_same;
  if (operator === "!=") return !is_same;
  const number = typeof found === "string" && found.trim() !== "" ? Number(found) : found;
  return typeof number === "number" && (ORDERS[operator]?.(number, Number(value)) ?? false);
}

/** A field of this name, or one inside others: `http.status`. */
function fieldOf(fields: Record<string, unknown>, name: string): unknown {
  if (Object.hasOwn(fields, name)) return fields[name];
  let found: unknown = fields;
  for (const part of name.split(".")) {
    if (found === null || typeof found !== "object" || !Object.hasOwn(found, part)) return undefined;
    found = (found as Record<string, unknown>)[part];
  }
  return found;
}

/** A level as a number, as pino and bunyan write it. */
const NUMBERED = '"(?:level|severity|lvl|loglevel)"\\s*:\\s*\\d';
const LEVEL_NEEDLES: Record<Level, string> = {
  error: `err|fatal|panic|crit|emerg|alert|"e"|${NUMBERED}`,
  warn: `warn|"w"|${NUMBERED}`,
  info: `info|notice|log|"i"|${NUMBERED}`,
  debug: `debug|trace|verbose|"d"|${NUMBERED}`,
};
/** Bytes that are the same in UTF-8 and latin1. */
const PLAIN_RUN = /[\x20-\x7e]+/g;

/** The longest text that must be there; a level only when there is none. */
function needleOf(words: readonly string[], tests: readonly FieldTest[], level: Level | undefined): RegExp | undefined {
  const wanted = [
    ...words,
    ...tests.flatMap(({ operator, name, value }) =>
      operator === "!=" ? [] : [name.split(".").at(-1) ?? "", ...(operator === "=" && isPlain(value) ? [value] : [])],
    ),
  ];
  const runs = wanted.flatMap((text) => text.match(PLAIN_RUN) ?? []);
  const longest = runs.reduce((best, run) => (run.length > best.length ? run : best), "");
  if (longest !== "") return new RegExp(longest.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"), "gi");
  return level === undefined ? undefined : new RegExp(LEVEL_NEEDLES[level], "gi");
}

/** JSON writes it as it is. */
const isPlain = (value: string): boolean => /^[\x20-\x7e]*$/.test(value) && !/["\\/]/.test(value);
