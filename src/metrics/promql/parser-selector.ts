import type { Matcher } from "../source.ts";
import { NAME, type RawFilter, type StringPart } from "./ast.ts";
import { advance, type Cursor, expectSign, isKeyword, isSign, unexpected } from "./cursor.ts";

/** Stands for the place of a quoted metric name, which unlike `__name__="x"` reaches over `or`. */
const QUOTED_NAME = -1;

/**
 * `{a="b", c=~"d" or e="f"}`. `named` is the metric name in front of the braces; it holds for every alternative.
 * A lone identifier is a WITH template, a lone string the metric name.
 */
export function parseFilters(c: Cursor, named: RawFilter | undefined): RawFilter[][] {
  expectSign(c, "{");
  const groups: RawFilter[][] = [];
  const start = (): RawFilter[] => (named ? [named] : []);
  let group = start();
  if (isSign(c, "}")) {
    advance(c);
    return named ? [[named]] : [];
  }
  for (;;) {
    group.push(parseFilter(c));
    if (isSign(c, ",")) {
      advance(c);
      if (!isSign(c, "}")) continue;
    }
    groups.push(group);
    if (isSign(c, "}")) break;
    if (!isKeyword(c, "or") || c.dialect === "promql") throw unexpected(c, '"," or "}"');
    advance(c);
    group = start();
  }
  expectSign(c, "}");
  return shareName(groups).map((filters) => nameFirst(c, filters));
}

/** A quoted name before the first filters, `{"metric", a="b" or c="d"}`, holds for alternatives without one. */
function shareName(groups: RawFilter[][]): RawFilter[][] {
  const first = groups[0]?.[0];
  if (first?.at !== QUOTED_NAME) return groups;
  return groups.map((group) => (group.some((f) => f.label === NAME) ? group : [first, ...group]));
}

function nameFirst(c: Cursor, filters: RawFilter[]): RawFilter[] {
  const names = filters.filter((f) => f.label === NAME && f.op === "=");
  if (c.dialect === "promql" && names.length > 1) throw unexpected(c, "one metric name, not two");
  return [...names, ...filters.filter((f) => !(f.label === NAME && f.op === "="))];
}

function parseFilter(c: Cursor): RawFilter {
  const { type, text, at } = c.token;
  if (type !== "ident" && type !== "string") throw unexpected(c, "a label name");
  advance(c);
  const sign = c.token.type === "sign" ? c.token.text : "";
  if (sign === "=" || sign === "!=" || sign === "=~" || sign === "!~") {
    advance(c);
    return { label: text, op: sign satisfies Matcher["op"], value: parseStringParts(c), at };
  }
  if (type === "string") return { label: NAME, op: "=", value: [text], at: QUOTED_NAME };
  if (c.dialect === "promql") throw unexpected(c, "one of = != =~ !~");
  return { label: text, value: [], at };
}

/** `"a" + name + "b"`: strings, and names of templates that will give strings. */
export function parseStringParts(c: Cursor): StringPart[] {
  const parts: StringPart[] = [];
  for (;;) {
    if (c.token.type === "string") parts.push(advance(c).text);
    else if (c.token.type === "ident" && c.dialect === "metricsql") parts.push({ template: advance(c).text });
    else throw unexpected(c, "a string");
    if (!isSign(c, "+") || c.dialect === "promql") return parts;
    advance(c);
  }
}
