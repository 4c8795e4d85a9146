import { column, isEmpty, type Row } from "../frame.ts";
import { compareLabels, setLabel } from "../labels.ts";
import { mad, mean, quantile, quantileOfSorted, spread } from "../statistics.ts";
import { GREATEST_MOST, keepGreatest } from "./greatest.ts";
import { groupLabels, groupRows } from "./groups.ts";
import { type Aggregate, type AggregateCall, expectArguments, scalarAt, stringAt } from "./statistics.ts";

/** Aggregates that give back some of the series they got, not one per group. */

/** No value ranks below every value, whichever end is wanted. */
function rank(a: number, b: number, reverse: boolean): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(b)) - Number(Number.isNaN(a));
  return reverse ? b - a : a - b;
}

function wholeK(k: number, most: number): number {
  return Number.isNaN(k) ? 0 : Math.max(0, Math.min(most, Math.trunc(k)));
}

/** Step `i` of all but the last k rows is emptied. */
function keepLastK(rows: Row[], k: number, i: number): void {
  const keep = wholeK(k, rows.length);
  for (let n = 0; n < rows.length - keep; n++) (rows[n] as Row).values[i] = Number.NaN;
}

/** topk and bottomk: the best at each step, so more than k series can come out. */
function best(reverse: boolean): Aggregate {
  return (call) => {
    expectArguments(call, 2);
    const ks = scalarAt(call, 0);
    const k = wholeK(ks[0] as number, GREATEST_MOST + 1);
    const few = k > 0 && k <= GREATEST_MOST && ks.every((one) => one === ks[0]);
    return groupRows(call.args[1] ?? [], call.expr).flatMap(({ rows }) =>
      few ? fewBest(rows, k, reverse) : bestBySorting(rows, ks, reverse),
    );
  };
}

/** The best first, by where they stand at the end. */
function fewBest(rows: Row[], k: number, reverse: boolean): Row[] {
  const ends = new Map(rows.map((row) => [row, row.values.at(-1) as number]));
  const order = (a: Row, b: Row): number => rank(ends.get(a) as number, ends.get(b) as number, reverse);
  return keepGreatest(rows, k, reverse ? -1 : 1)
    .sort(order)
    .reverse();
}

function bestBySorting(rows: Row[], ks: Float64Array, reverse: boolean): Row[] {
  for (let i = 0; i < ks.length; i++) {
    rows.sort((a, b) => rank(a.values[i] as number, b.values[i] as number, reverse));
    keepLastK(rows, ks[i] as number, i);
  }
  return rows.filter((row) => !isEmpty(row)).reverse();
}

/** topk_avg and its kin: ranked once by a number about the whole range; the rest can be summed into one series. */
function bestOverRange(score: (values: Float64Array) => number, reverse: boolean): Aggregate {
  return (call) => {
    expectArguments(call, 2, 3);
    const ks = scalarAt(call, 0);
    const rest = call.args.length > 2 ? stringAt(call, 2) : "";
    return groupRows(call.args[1] ?? [], call.expr).flatMap(({ rows }) =>
      pickBest(call, rows, ks, rest, score, reverse),
    );
  };
}

function pickBest(
  call: AggregateCall,
  rows: Row[],
  ks: Float64Array,
  rest: string,
  score: (values: Float64Array) => number,
  reverse: boolean,
): Row[] {
  const ranked = rows
    .map((row) => ({ row, score: score(row.values) }))
    .sort((a, b) => rank(a.score, b.score, reverse))
    .map(({ row }) => row);
  const remaining = rest === "" ? [] : [sumOfRest(call, ranked, ks, rest)];
  for (let i = 0; i < ks.length; i++) keepLastK(ranked, ks[i] as number, i);
  return [...ranked, ...remaining].filter((row) => !isEmpty(row)).reverse();
}

/** `"other"` labels the rest `{other="other"}`, `"app=rest"` labels it `{app="rest"}`. */
function sumOfRest(call: AggregateCall, ranked: Row[], ks: Float64Array, rest: string): Row {
  const cut = rest.indexOf("=");
  const [name, value] = cut < 0 ? [rest, rest] : [rest.slice(0, cut), rest.slice(cut + 1)];
  const values = column(call.frame, Number.NaN);
  for (let i = 0; i < values.length; i++) {
    const others = ranked.length - wholeK(ks[i] as number, ranked.length);
    for (let n = 0; n < others; n++) {
      const add = (ranked[n] as Row).values[i] as number;
      if (Number.isNaN(add)) continue;
      values[i] = Number.isNaN(values[i] as number) ? add : (values[i] as number) + add;
    }
  }
  return { labels: setLabel(groupLabels(ranked[0]?.labels ?? [], call.expr.modifier), name, value), values };
}

/** What a series is worth over the whole range. */
const SCORES: Record<string, (values: Float64Array) => number> = {
  avg: mean,
  last: (values) => values.findLast((v) => !Number.isNaN(v)) ?? Number.NaN,
  max: (values) => values.reduce((a, v) => (Number.isNaN(a) || v > a ? v : a), Number.NaN),
  median: (values) => quantile(0.5, values),
  min: (values) => values.reduce((a, v) => (Number.isNaN(a) || v < a ? v : a), Number.NaN),
};

function limitk(call: AggregateCall): Row[] {
  expectArguments(call, 2);
  const k = scalarAt(call, 0)[0] ?? Number.NaN;
  // Always the same series for the same labels, whatever order they come in.
  return groupRows(call.args[1] ?? [], call.expr).flatMap(({ rows }) =>
    rows.sort((a, b) => compareLabels(a.labels, b.labels)).slice(0, wholeK(k, rows.length)),
  );
}

/** Rows of the group changed together at each step. */
function together(change: (rows: Row[], i: number) => void): Aggregate {
  return (call) =>
    groupRows(call.args.flat(), call.expr).flatMap(({ rows }) => {
      for (let i = 0; i < call.frame.points; i++) change(rows, i);
      return rows;
    });
}

/** Negative values have no share. */
function share(rows: Row[], i: number): void {
  const sum = rows.reduce(
    (total, { values }) => ((values[i] as number) >= 0 ? total + (values[i] as number) : total),
    0,
  );
  for (const { values } of rows) values[i] = (values[i] as number) >= 0 ? (values[i] as number) / sum : Number.NaN;
}

function zscore(rows: Row[], i: number): void {
  const { average, variance } = spread(columnAt(rows, i));
  const deviation = Math.sqrt(variance);
  for (const { values } of rows) values[i] = ((values[i] as number) - average) / deviation;
}

function columnAt(rows: Row[], i: number): number[] {
  return rows.map(({ values }) => values[i] as number);
}

/** Series with at least one value outside the bounds of its step. */
function outside(rows: Row[], points: number, bounds: (values: number[], i: number) => [number, number]): Row[] {
  const limits = Array.from({ length: points }, (_, i) => bounds(columnAt(rows, i), i));
  return rows.filter(({ values }) =>
    limits.some(([low, high], i) => (values[i] as number) > high || (values[i] as number) < low),
  );
}

/** Outside one and a half times the middle half of the values. */
function outliersIqr(call: AggregateCall): Row[] {
  expectArguments(call, 1);
  return groupRows(call.args[0] ?? [], call.expr).flatMap(({ rows }) =>
    outside(rows, call.frame.points, (values) => {
      const sorted = Float64Array.from(values.filter((v) => !Number.isNaN(v))).sort();
      const q25 = quantileOfSorted(0.25, sorted);
      const q75 = quantileOfSorted(0.75, sorted);
      const reach = 1.5 * (q75 - q25);
      return [q25 - reach, q75 + reach];
    }),
  );
}

/** Further from the median than some median distances. */
function outliersMad(call: AggregateCall): Row[] {
  expectArguments(call, 2);
  const tolerances = scalarAt(call, 0);
  return groupRows(call.args[1] ?? [], call.expr).flatMap(({ rows }) =>
    outside(rows, call.frame.points, (values, i) => {
      const median = quantile(0.5, values);
      const reach = mad(values) * (tolerances[i] as number);
      return [median - reach, median + reach];
    }),
  );
}

/** The k series that stray furthest from the median. */
function outliersk(call: AggregateCall): Row[] {
  expectArguments(call, 2);
  const ks = scalarAt(call, 0);
  return groupRows(call.args[1] ?? [], call.expr).flatMap(({ rows }) => {
    const medians = Array.from({ length: call.frame.points }, (_, i) => quantile(0.5, columnAt(rows, i)));
    const strays = (values: Float64Array): number =>
      values.reduce((sum, v, i) => (Number.isNaN(v) ? sum : sum + (v - (medians[i] as number)) ** 2), 0);
    return pickBest(call, rows, ks, "", strays, false);
  });
}

export const SELECTIONS: Readonly<Record<string, Aggregate>> = {
  bottomk: best(true),
  limitk,
  outliers_iqr: outliersIqr,
  outliers_mad: outliersMad,
  outliersk,
  share: together(share),
  topk: best(false),
  zscore: together(zscore),
  ...Object.fromEntries(
    Object.entries(SCORES).flatMap(([name, score]) => [
      [`topk_${name}`, bestOverRange(score, false)],
      [`bottomk_${name}`, bestOverRange(score, true)],
    ]),
  ),
};
