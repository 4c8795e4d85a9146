import { RE2JS } from "re2js";

/**
 * Regular expressions of label matchers: RE2's language and its promise of linear time, whole value matched.
 * JavaScript's own engine would let one query stop the world with `(a+)+$`.
 */
export function compileRegex(pattern: string): (value: string) => boolean {
  const literals = alternatives(pattern);
  if (literals?.length === 1) return (value) => value === literals[0];
  if (literals) {
    const set = new Set(literals);
    return (value) => set.has(value);
  }
  const edge = /^([\w :/-]*)\.([*+])$/.exec(pattern);
  if (edge) {
    const [, prefix = "", repeat] = edge;
    const shortest = prefix.length + (repeat === "+" ? 1 : 0);
    // `.` is not a newline in RE2 unless the s flag is set, and matchers set it, as Prometheus does.
    return (value) => value.length >= shortest && value.startsWith(prefix);
  }
  const compiled = RE2JS.compile(pattern, RE2JS.DOTALL);
  const memo = new Map<string, boolean>();
  return (value) => {
    const known = memo.get(value);
    if (known !== undefined) return known;
    const matched = compiled.matches(value);
    if (memo.size < MEMO_ENTRIES) memo.set(value, matched);
    return matched;
  };
}

/** Why a pattern is no RE2, undefined when it is one. */
export function regexError(pattern: string): string | undefined {
  try {
    RE2JS.compile(pattern, RE2JS.DOTALL);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Values remembered per pattern; the rest is matched again each time. */
const MEMO_ENTRIES = 10_000;

/** `a|b|c` of plain text, or undefined when the pattern is more than that. */
function alternatives(pattern: string): string[] | undefined {
  return /^[\w :/|-]*$/.test(pattern) ? pattern.split("|") : undefined;
}

/** Go's `$1`, `${name}` and `$$` in a replacement. */
const REFERENCE = /\$(?:\$|\{(\w+)\}|(\w+))/g;

/** The text put together from a match; a group that is absent or did not take part is empty. */
function fillIn(replacement: string, group: (name: string) => string): string {
  return replacement.replace(REFERENCE, (all: string, braced?: string, bare?: string) =>
    all === "$$" ? "$" : group(braced ?? bare ?? ""),
  );
}

interface Match {
  group(name: number | string): string | null;
  groupCount(): number;
}

function groupOf(matcher: Match): (name: string) => string {
  return (name) => {
    const index = Number(name);
    if (Number.isInteger(index)) return index <= matcher.groupCount() ? (matcher.group(index) ?? "") : "";
    try {
      return matcher.group(name) ?? "";
    } catch {
      return "";
    }
  };
}

/** Gives the replacement when the pattern matches the whole value, undefined when it does not. */
export function replaceWhole(pattern: string, replacement: string): (value: string) => string | undefined {
  const compiled = RE2JS.compile(pattern, RE2JS.DOTALL);
  return (value) => {
    const matcher = compiled.matcher(value);
    return matcher.matches() ? fillIn(replacement, groupOf(matcher)) : undefined;
  };
}

/** The value with every match replaced, undefined when there is none. */
export function replaceAll(pattern: string, replacement: string): (value: string) => string | undefined {
  const compiled = RE2JS.compile(pattern);
  return (value) => {
    const matcher = compiled.matcher(value);
    let out = "";
    let from = 0;
    let found = false;
    while (matcher.find()) {
      found = true;
      out += value.slice(from, matcher.start()) + fillIn(replacement, groupOf(matcher));
      from = matcher.end();
    }
    return found ? out + value.slice(from) : undefined;
  };
}

/** Whether the pattern matches somewhere in the text. */
export const findsRegex = (pattern: string, text: string): boolean => RE2JS.compile(pattern).matcher(text).find();
