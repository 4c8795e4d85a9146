import { compileRegex } from "../../regex.ts";
import type { Matcher } from "../../source.ts";
import { intersect, RefSet } from "./postings.ts";
import type { SeriesTable } from "./series-table.ts";

/** The series an OR of ANDs of matchers picks, rising and each once. */
export function matchSeries(table: SeriesTable, selector: readonly (readonly Matcher[])[]): Uint32Array {
  const lists = selector.map((matchers) => matchAll(table, matchers));
  if (lists.length === 1 && lists[0]) return lists[0];
  return union(table, lists);
}

/** What a matcher says about pairs: series with one of `pairs` are in (or, when `without`, out). */
interface Condition {
  pairs: number[];
  without: boolean;
}

function matchAll(table: SeriesTable, matchers: readonly Matcher[]): Uint32Array {
  const conditions = matchers.map((matcher) => conditionOf(table, matcher));
  const wanted = conditions
    .filter(({ without }) => !without)
    .map(({ pairs }) => ofPairs(table, pairs))
    .sort((a, b) => a.length - b.length);
  let found = wanted.shift() ?? table.all();
  for (const list of wanted) found = intersect(found, list);
  for (const { pairs } of conditions.filter(({ without }) => without)) {
    if (found.length > 0 && pairs.length > 0) found = subtract(table, found, pairs);
  }
  return found;
}

/**
 * An absent label is the empty string. So a matcher that accepts "" also accepts every series without the
 * label, and is said the other way round: all series except those with a value that does not match.
 */
function conditionOf(table: SeriesTable, { name, op, value }: Matcher): Condition {
  const accepts = predicate(op, value);
  const without = accepts("");
  const pairs = table.names.get(name)?.pairs ?? new Map<string, number>();
  if (op === "=" && !without) {
    const pair = pairs.get(value);
    return { pairs: pair === undefined ? [] : [pair], without };
  }
  const chosen: number[] = [];
  for (const [text, pair] of pairs) if (accepts(text) !== without) chosen.push(pair);
  return { pairs: chosen, without };
}

function predicate(op: Matcher["op"], value: string): (text: string) => boolean {
  switch (op) {
    case "=":
      return (text) => text === value;
    case "!=":
      return (text) => text !== value;
    case "=~":
      return compileRegex(value);
    case "!~": {
      const matches = compileRegex(value);
      return (text) => !matches(text);
    }
  }
}

function ofPairs(table: SeriesTable, pairs: number[]): Uint32Array {
  const [only] = pairs;
  if (pairs.length === 1 && only !== undefined) return table.postings(only);
  return union(
    table,
    pairs.map((pair) => table.postings(pair)),
  );
}

function union(table: SeriesTable, lists: Uint32Array[]): Uint32Array {
  const set = new RefSet(table.count);
  for (const list of lists) set.addAll(list);
  return set.list();
}

function subtract(table: SeriesTable, from: Uint32Array, pairs: number[]): Uint32Array {
  const out = new RefSet(table.count);
  for (const pair of pairs) out.addAll(table.postings(pair));
  return from.filter((ref) => !out.has(ref));
}
