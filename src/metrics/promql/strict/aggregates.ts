import { compact } from "../../histogram/histogram.ts";
import { showHistogram } from "../../histogram/text.ts";
import { copyBits } from "../../nan-bits.ts";
import { groupLabels } from "../aggregate/groups.ts";
import { type AggregateExpr, type Expr, NAME } from "../ast.ts";
import { executionError } from "../errors.ts";
import type { Frame } from "../frame.ts";
import { labelsKey, labelValue, setLabel } from "../labels.ts";
import { formatFixed } from "../numbers.ts";
import { quantileOfSorted } from "../statistics.ts";
import { labelHash } from "./label-hash.ts";
import { addAll } from "./native-sums.ts";
import type { Evaluate } from "./selectors.ts";
import { Average, Sum, sortWithNaN, Variance } from "./sums.ts";
import {
  ABSENT,
  checkQuantile,
  FLOAT,
  HISTOGRAM,
  histogramOf,
  inform,
  newRow,
  putNative,
  type Row,
  warn,
} from "./values.ts";

/** Aggregations of the strict dialect. */

interface Group {
  labels: Row["labels"];
  /** `by (__name__)` still sees names that are going to be dropped, so that label_replace can bring them back. */
  dropName: boolean;
  rows: Row[];
}

function groupsOf(rows: Row[], expr: AggregateExpr): Group[] {
  const groups = new Map<string, Group>();
  for (const row of rows) {
    const labels = groupLabels(row.labels, expr.modifier);
    const key = labelsKey(labels);
    const group = groups.get(key) ?? { labels, dropName: false, rows: [] };
    groups.set(key, group);
    group.rows.push(row);
    group.dropName ||= row.dropName;
  }
  return [...groups.values()];
}

interface Fold {
  add(value: number): void;
  readonly value: number;
}

/** NaN loses against any number, at both ends. */
class Extreme implements Fold {
  value = Number.NaN;
  readonly #better: (a: number, b: number) => boolean;
  constructor(better: (a: number, b: number) => boolean) {
    this.#better = better;
  }
  add(value: number): void {
    if (this.#better(value, this.value) || Number.isNaN(this.value)) this.value = value;
  }
}

class Count implements Fold {
  value = 0;
  add(): void {
    this.value++;
  }
}

const root = (fold: Fold): Fold => ({
  add: (v) => fold.add(v),
  get value() {
    return Math.sqrt(fold.value);
  },
});

const FOLDS: Record<string, () => Fold> = {
  avg: () => new Average(),
  count: () => new Count(),
  group: () => ({ add: () => undefined, value: 1 }),
  max: () => new Extreme((a, b) => a > b),
  min: () => new Extreme((a, b) => a < b),
  stddev: () => root(new Variance()),
  stdvar: () => new Variance(),
  sum: () => new Sum(),
};

/** count and group take native histograms as they take numbers. */
const COUNTS_ALL = new Set(["count", "group"]);
/** sum and avg add native histograms up. */
const ADDS_HISTOGRAMS = new Set(["sum", "avg"]);

export function aggregate(frame: Frame, expr: AggregateExpr, evaluate: Evaluate): Row[] {
  const param = expr.args.length > 1 ? expr.args[0] : undefined;
  const arg = expr.args.at(-1);
  const value = arg && evaluate(frame, arg);
  if (value?.type !== "vector") throw executionError(`${expr.name}() needs an instant vector`);
  const { rows } = value;
  const fold = FOLDS[expr.name];
  if (ADDS_HISTOGRAMS.has(expr.name) && rows.some((row) => row.present.includes(HISTOGRAM)))
    return groupsOf(rows, expr).map((group) => foldMixed(frame, expr, group));
  if (fold) return groupsOf(rows, expr).map((group) => foldGroup(frame, expr, group, fold));
  if (expr.name === "count_values") return countValues(frame, expr, rows, textOf(frame, param, evaluate));
  const numbers = numbersOf(frame, param, evaluate);
  if (expr.name === "quantile") return quantiles(frame, expr, rows, numbers);
  if (numbers.some(Number.isNaN))
    throw executionError(`${expr.name === "limit_ratio" ? "Ratio" : "Parameter"} value is NaN`);
  const choose = expr.name === "limit_ratio" ? inShare : select;
  return groupsOf(rows, expr).flatMap((group) => choose(frame, expr, group, numbers));
}

function numbersOf(frame: Frame, param: Expr | undefined, evaluate: Evaluate): Float64Array {
  const value = param && evaluate(frame, param);
  if (value?.type !== "scalar") throw executionError("the parameter of an aggregation must be a number");
  return value.values;
}

function textOf(frame: Frame, param: Expr | undefined, evaluate: Evaluate): string {
  const value = param && evaluate(frame, param);
  if (value?.type !== "string") throw executionError("the parameter of an aggregation must be a string");
  return value.text;
}

function ignored(frame: Frame, expr: AggregateExpr): void {
  inform(frame, `ignored histogram in ${expr.name} aggregation`, argumentAt(expr));
}

function foldGroup(frame: Frame, expr: AggregateExpr, { labels, dropName, rows }: Group, make: () => Fold): Row {
  const out = newRow(frame, labels, dropName);
  for (let i = 0; i < frame.points; i++) {
    const fold = make();
    for (const row of rows) if (row.present[i] !== ABSENT) foldOne(frame, expr, fold, out, row, i);
    if (out.present[i] === FLOAT) out.values[i] = fold.value;
  }
  return out;
}

/** A group that has native histograms at some steps: they are added up, numbers as ever, and a mix of both is nothing. */
function foldMixed(frame: Frame, expr: AggregateExpr, { labels, dropName, rows }: Group): Row {
  const out = newRow(frame, labels, dropName);
  for (let i = 0; i < frame.points; i++) {
    const natives = rows.filter((row) => row.present[i] === HISTOGRAM);
    const numbers = rows.filter((row) => row.present[i] === FLOAT);
    if (natives.length === 0) putTotal(expr, out, i, numbers);
    else if (numbers.length === 0) putNativeTotal(frame, expr, out, i, natives);
    else warn(frame, "encountered a mix of histograms and floats for aggregation", argumentAt(expr));
  }
  return out;
}

const argumentAt = (expr: AggregateExpr): number => expr.args.at(-1)?.at ?? expr.at;

function putTotal(expr: AggregateExpr, out: Row, i: number, rows: readonly Row[]): void {
  if (rows.length === 0) return;
  const fold = expr.name === "avg" ? new Average() : new Sum();
  for (const row of rows) fold.add(row.values[i] as number);
  out.present[i] = FLOAT;
  out.values[i] = fold.value;
}

function putNativeTotal(frame: Frame, expr: AggregateExpr, out: Row, i: number, rows: readonly Row[]): void {
  const samples = rows.map((row) => ({ histogram: histogramOf(frame, row, i), name: nameOf(row) }));
  const total = addAll({ frame, at: argumentAt(expr), isAverage: expr.name === "avg" }, samples);
  if (total) putNative(frame, out, i, compact(total));
}

const nameOf = (row: Row): string => labelValue(row.labels, NAME);

function foldOne(frame: Frame, expr: AggregateExpr, fold: Fold, out: Row, row: Row, i: number): void {
  if (row.present[i] === FLOAT || COUNTS_ALL.has(expr.name)) {
    fold.add(row.values[i] as number);
    out.present[i] = FLOAT;
  } else ignored(frame, expr);
}

/** The numbers of the group at a step. */
function numbersAt(frame: Frame, expr: AggregateExpr, rows: Row[], i: number): Float64Array {
  const values = new Float64Array(rows.length);
  let n = 0;
  for (const row of rows) {
    if (row.present[i] === FLOAT) values[n++] = row.values[i] as number;
    else if (row.present[i] === HISTOGRAM) ignored(frame, expr);
  }
  return values.subarray(0, n);
}

/** NaN counts as the smallest value. */
function quantiles(frame: Frame, expr: AggregateExpr, rows: Row[], phis: Float64Array): Row[] {
  for (const phi of new Set(phis)) checkQuantile(frame, phi, expr.args[0]?.at ?? expr.at);
  return groupsOf(rows, expr).map(({ labels, dropName, rows: members }) => {
    const out = newRow(frame, labels, dropName);
    for (let i = 0; i < frame.points; i++) {
      const values = numbersAt(frame, expr, members, i);
      if (values.length === 0) continue;
      out.present[i] = FLOAT;
      out.values[i] = quantileOfSorted(phis[i] as number, sortWithNaN(values));
    }
    return out;
  });
}

/** The value becomes a label, so it must be one that can be written. */
function countValues(frame: Frame, expr: AggregateExpr, rows: Row[], label: string): Row[] {
  if (label === "" || label.includes("\ufffd")) throw executionError(`invalid label name ${JSON.stringify(label)}`);
  const { modifier } = expr;
  const names =
    modifier?.op === "by" ? modifier.labels.filter((name) => name !== label) : [...(modifier?.labels ?? []), label];
  const without = modifier ? { ...expr, modifier: { ...modifier, labels: names } } : expr;
  return groupsOf(rows, without).flatMap(({ labels, dropName, rows: members }) => {
    const counts = new Map<string, Row>();
    for (const row of members) {
      for (let i = 0; i < frame.points; i++) {
        if (row.present[i] === ABSENT) continue;
        const histogram = histogramOf(frame, row, i);
        const text = histogram ? showHistogram(histogram) : formatFixed(row.values[i] as number);
        const out = counts.get(text) ?? newRow(frame, setLabel(labels, label, text), dropName && label !== NAME);
        counts.set(text, out);
        out.present[i] = FLOAT;
        out.values[i] = (out.values[i] as number) + 1;
      }
    }
    return [...counts.values()];
  });
}

/** NaN is worst at both ends. */
function rank(a: number, b: number, descending: boolean): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return descending ? b - a : a - b;
}

/** topk, bottomk, limitk: some of the series of each step, best first. */
function select(frame: Frame, expr: AggregateExpr, { rows }: Group, ks: Float64Array): Row[] {
  const outs = new Map<Row, Row>();
  for (let i = 0; i < frame.points; i++) {
    for (const row of chosen(frame, expr, rows, ks[i] as number, i)) {
      const out = outs.get(row) ?? newRow(frame, row.labels, row.dropName);
      outs.set(row, out);
      out.present[i] = row.present[i] as number;
      copyBits(row.values, i, out.values, i);
    }
  }
  return [...outs.values()];
}

function chosen(frame: Frame, expr: AggregateExpr, rows: Row[], k: number, i: number): Row[] {
  const there = rows.filter((row) => row.present[i] !== ABSENT);
  if (expr.name === "limitk") return there.slice(0, Math.max(0, Math.trunc(k)));
  if (there.some((row) => row.present[i] === HISTOGRAM)) ignored(frame, expr);
  const numbers = there.filter((row) => row.present[i] === FLOAT);
  numbers.sort((a, b) => rank(a.values[i] as number, b.values[i] as number, expr.name === "topk"));
  return numbers.slice(0, Math.max(0, Math.trunc(k)));
}

/** A stable share of all series: a hash of the labels decides, and a negative ratio takes the others. */
function inShare(frame: Frame, expr: AggregateExpr, { rows }: Group, ratios: Float64Array): Row[] {
  for (const ratio of new Set(ratios)) {
    if (Math.abs(ratio) <= 1) continue;
    const most = Math.sign(ratio);
    const message = `ratio value should be between -1 and 1, got ${formatFixed(ratio)}, capping to ${most}`;
    warn(frame, message, expr.args[0]?.at ?? expr.at);
  }
  return rows.map((row) => {
    const place = Number(labelHash(row.labels)) / 2 ** 64;
    const out = newRow(frame, row.labels, row.dropName);
    for (let i = 0; i < frame.points; i++) {
      const ratio = Math.max(-1, Math.min(1, ratios[i] as number));
      if (!(ratio >= 0 ? place < ratio : place >= 1 + ratio)) continue;
      out.present[i] = row.present[i] as number;
      copyBits(row.values, i, out.values, i);
    }
    return out;
  });
}
