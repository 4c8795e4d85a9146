/** Series of unit tests: `up{app="web"}` and `0+10x5 _ stale` in promtool's notation. */
import { parse } from "#metrics/promql/parse.ts";
import { STALE_NAN } from "#metrics/source.ts";
import type { LabelMap } from "../rules/types.ts";

/** Values of one series; more would only use memory. */
const MOST_VALUES = 1_000_000;

/** Throws when the text is no series without matchers. */
export function parseSeriesLabels(text: string): LabelMap {
  if (/^\s*\{\s*\}\s*$/.test(text) || text.trim() === "") return {};
  const expr = parse(text, "metricsql");
  const [filters = [], ...others] = expr.kind === "selector" ? expr.filters : [];
  if (expr.kind !== "selector" || others.length > 0 || filters.some(({ op }) => op !== "="))
    throw new Error(`${JSON.stringify(text)} is no series such as up{app="web"}`);
  return Object.fromEntries(filters.map(({ name, value }) => [name, value]));
}

const NUMBER = String.raw`(?:[\d.]+(?:e[+-]?\d+)?|inf|nan)`;
const RAMP = new RegExp(`^([+-]?${NUMBER})([+-]${NUMBER})x(\\d+)$`, "i");
const REPEATED = new RegExp(`^([+-]?${NUMBER}|_|stale)x(\\d+)$`, "i");

/** Undefined where there is no sample. */
export function parseValues(text: string): (number | undefined)[] {
  const values: (number | undefined)[] = [];
  for (const item of text.trim().split(/\s+/).filter(Boolean)) {
    const found = itemValues(item);
    if (values.length + found.length > MOST_VALUES) throw new Error(`a series has at most ${MOST_VALUES} values`);
    for (const value of found) values.push(value);
  }
  return values;
}

function itemValues(item: string): (number | undefined)[] {
  const ramp = RAMP.exec(item);
  const repeated = ramp ? null : REPEATED.exec(item);
  const times = Number(ramp?.[3] ?? repeated?.[2] ?? 0);
  if (times > MOST_VALUES) throw new Error(`a series has at most ${MOST_VALUES} values`);
  if (ramp) {
    const step = numberOf(ramp[2] as string);
    const values = [numberOf(ramp[1] as string)];
    // Added up one by one, as promtool does: the rounding is the same.
    for (let at = 0; at < times; at++) values.push((values[at] as number) + step);
    return values;
  }
  const literal = repeated?.[1] ?? item;
  // `_x3` is three missing samples; a value is there once more than it is repeated.
  if (literal === "_") return Array.from({ length: repeated ? times : 1 }, () => undefined);
  const value = literal === "stale" ? STALE_NAN : numberOf(literal);
  return Array.from({ length: times + 1 }, () => value);
}

function numberOf(text: string): number {
  const lower = text.toLowerCase();
  if (/^[+-]?inf$/.test(lower)) return lower.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (/^[+-]?nan$/.test(lower)) return Number.NaN;
  const value = Number(lower);
  if (lower === "" || Number.isNaN(value)) throw new Error(`${JSON.stringify(text)} is no value`);
  return value;
}
