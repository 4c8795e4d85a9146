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

/** Values remembered per pattern; the rest is matched again each time. */
const MEMO_ENTRIES = 10_000;

/** `a|b|c` of plain text, or undefined when the pattern is more than that. */
function alternatives(pattern: string): string[] | undefined {
  return /^[\w :/|-]*$/.test(pattern) ? pattern.split("|") : undefined;
}
