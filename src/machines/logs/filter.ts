/** Which log lines a search wants: words, a level, and fields of JSON lines. */
import { type Level, readMessage, textOf } from "#core/log-line.ts";

export interface LogFilter {
  /** Every word is in the line, in upper or lower case. */
  text?: string;
  level?: Level;
  /** Tests of fields, such as `status>=500`; every one holds. */
  fields?: readonly string[];
}

/** What to look for in bytes read one by one (latin1), in upper or lower case; `text` is in lower case. */
export type Needle = { text: string } | { pattern: string };

export interface LogMatcher {
  /** What every wanted line contains: a quick test before the exact one. */
  needle: Needle | undefined;
  /** Everything that every wanted line contains, as far as it can be told. */
  texts: readonly string[];
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
  const [values, names] = textsOf(words, tests);
  return {
    needle: needleOf(values, names, level),
    texts: [...values, ...names],
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

/** Text that must be there: words and values, and names of fields, which are in most lines. */
function textsOf(words: readonly string[], tests: readonly FieldTest[]): [values: string[], names: string[]] {
  const wanted = tests.filter(({ operator }) => operator !== "!=");
  const values = wanted.flatMap(({ operator, value }) => (operator === "=" && isPlain(value) ? [value] : []));
  const names = wanted.map(({ name }) => name.split(".").at(-1) ?? "").filter(isPlain);
  const runs = (texts: readonly string[]): string[] => texts.flatMap((text) => text.match(PLAIN_RUN) ?? []);
  return [runs([...words, ...values]), runs(names)];
}

/** The longest text, or a level when there is none. A value of two characters is in more lines than most names. */
function needleOf(values: readonly string[], names: readonly string[], level: Level | undefined): Needle | undefined {
  const longest = (texts: readonly string[]): string =>
    texts.reduce((best, text) => (text.length > best.length ? text : best), "");
  const [value, name] = [longest(values), longest(names)];
  const text = value.length > SHORT_VALUE || name === "" ? value : name;
  if (text !== "") return { text: text.toLowerCase() };
  return level === undefined ? undefined : { pattern: LEVEL_NEEDLES[level] };
}

const SHORT_VALUE = 2;

/** JSON writes it as it is. */
const isPlain = (value: string): boolean => /^[\x20-\x7e]*$/.test(value) && !/["\\/]/.test(value);
