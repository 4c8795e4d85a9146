import type { AggregateExpr } from "../ast.ts";
import { executionError } from "../errors.ts";
import { column, type Frame, type Row } from "../frame.ts";
import { toCumulative } from "../functions/buckets.ts";
import { setLabel } from "../labels.ts";
import { formatFixed, formatShort } from "../numbers.ts";
import { mad, mode, quantileOfSorted, sortedValues } from "../statistics.ts";
import { visitBuckets } from "../vmrange.ts";
import { groupRows } from "./groups.ts";

/** Aggregates that need all values of a group at one step. */

export interface AggregateCall {
  frame: Frame;
  expr: AggregateExpr;
  args: Row[][];
}

export type Aggregate = (call: AggregateCall) => Row[];

export function expectArguments({ expr, args }: AggregateCall, least: number, most = least): void {
  if (args.length >= least && args.length <= most) return;
  throw executionError(
    `${expr.name}() takes ${least === most ? least : `${least} to ${most}`} arguments, not ${args.length}`,
  );
}

/** A number per step. */
export function scalarAt({ expr, args }: AggregateCall, i: number): Float64Array {
  const rows = args[i] ?? [];
  const [row] = rows;
  if (!row || rows.length !== 1)
    throw executionError(`argument ${i + 1} of ${expr.name}() must be one series, not ${rows.length}`);
  return row.values;
}

export function stringAt({ expr, args }: AggregateCall, i: number): string {
  const text = args[i]?.length === 1 ? args[i]?.[0]?.text : undefined;
  if (text === undefined) throw executionError(`argument ${i + 1} of ${expr.name}() must be a string`);
  return text;
}

/** The values of a group at step `i`, those that exist. */
function valuesAt(rows: Row[], i: number): Float64Array {
  const values = new Float64Array(rows.length);
  let n = 0;
  for (const row of rows) {
    const value = row.values[i] as number;
    if (!Number.isNaN(value)) values[n++] = value;
  }
  return values.subarray(0, n);
}

/** Columns of a group are read across, one step at a time. */
function perStep(compute: (values: Float64Array, i: number, call: AggregateCall) => number): Aggregate {
  return (call) =>
    groupRows(call.args.flat(), call.expr).map(({ labels, rows }) => {
      const values = column(call.frame);
      for (let i = 0; i < values.length; i++) values[i] = compute(valuesAt(rows, i), i, call);
      return { labels, values };
    });
}

function quantileAggregate(call: AggregateCall): Row[] {
  expectArguments(call, 2);
  const phis = scalarAt(call, 0);
  const rest = { ...call, args: call.args.slice(1) };
  return perStep((values, i) => quantileOfSorted(phis[i] as number, values.sort()))(rest);
}

/** The values of a step are sorted once for all quantiles. */
function quantilesAggregate(call: AggregateCall): Row[] {
  expectArguments(call, 3, Number.POSITIVE_INFINITY);
  const label = stringAt(call, 0);
  const phis = call.args.slice(1, -1).map((_, n) => scalarAt(call, n + 1)[0] ?? Number.NaN);
  return groupRows(call.args.at(-1) ?? [], call.expr).flatMap(({ labels, rows }) => {
    const columns = phis.map(() => column(call.frame));
    for (let i = 0; i < call.frame.points; i++) {
      const sorted = valuesAt(rows, i).sort();
      for (const [n, values] of columns.entries()) values[i] = quantileOfSorted(phis[n] as number, sorted);
    }
    return columns.map((values, n) => ({ labels: setLabel(labels, label, formatShort(phis[n] as number)), values }));
  });
}

/** How often each value occurs, under a label that holds the value. */
function countValues(call: AggregateCall): Row[] {
  expectArguments(call, 2);
  const label = stringAt(call, 0);
  const { modifier } = call.expr;
  const names =
    modifier?.op === "by" ? modifier.labels.filter((name) => name !== label) : [...(modifier?.labels ?? []), label];
  const expr = modifier ? { ...call.expr, modifier: { ...modifier, labels: names } } : call.expr;
  return groupRows(call.args[1] ?? [], expr).flatMap(({ labels, rows }) => {
    const counts = new Map<number, Float64Array>();
    for (const row of rows) countRow(call.frame, row.values, counts);
    return [...counts].map(([value, values]) => ({ labels: setLabel(labels, label, formatFixed(value)), values }));
  });
}

function countRow(frame: Frame, values: Float64Array, counts: Map<number, Float64Array>): void {
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (Number.isNaN(value)) continue;
    const found = counts.get(value) ?? column(frame, Number.NaN);
    counts.set(value, found);
    found[i] = Number.isNaN(found[i] as number) ? 1 : (found[i] as number) + 1;
  }
}

/** Values into ranges first, then the ranges into cumulative buckets. */
function histogram(call: AggregateCall): Row[] {
  const ranges = groupRows(call.args.flat(), call.expr).flatMap(({ labels, rows }) => {
    const columns = new Map<string, Float64Array>();
    for (let i = 0; i < call.frame.points; i++) {
      visitBuckets(valuesAt(rows, i), (range, count) => {
        const values = columns.get(range) ?? column(call.frame);
        values[i] = count;
        columns.set(range, values);
      });
    }
    return [...columns].map(([range, values]) => ({ labels: setLabel(labels, "vmrange", range), values }));
  });
  return toCumulative(call.frame, ranges);
}

export const STATISTICS: Readonly<Record<string, Aggregate>> = {
  count_values: countValues,
  distinct: perStep((values) => (values.length === 0 ? Number.NaN : new Set(values).size)),
  histogram,
  mad: perStep((values) => mad(values)),
  median: perStep((values) => quantileOfSorted(0.5, values.sort())),
  mode: perStep((values) => mode(sortedValues(values), Number.NaN)),
  quantile: quantileAggregate,
  quantiles: quantilesAggregate,
};
