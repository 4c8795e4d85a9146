import type { CallExpr, Expr } from "../ast.ts";
import { executionError } from "../errors.ts";
import { type Frame, numberRow, type Row } from "../frame.ts";
import { dropName } from "../labels.ts";
import { expectArgs } from "../rollup/plans.ts";

/** A call of a transform function with its arguments evaluated. Rows may be changed in place: they are ours. */
export interface Call {
  frame: Frame;
  expr: CallExpr;
  name: string;
  args: Row[][];
}

export type Transform = (call: Call) => Row[];

export interface Definition {
  least: number;
  most: number;
  apply: Transform;
}

export const exactly = (n: number, apply: Transform): Definition => ({ least: n, most: n, apply });
export const between = (least: number, most: number, apply: Transform): Definition => ({ least, most, apply });
export const atLeast = (least: number, apply: Transform): Definition => ({
  least,
  most: Number.POSITIVE_INFINITY,
  apply,
});

export function rowsOf(call: Call, i: number): Row[] {
  return call.args[i] ?? [];
}

/** A number per step. */
export function scalarOf(call: Call, i: number): Float64Array {
  const rows = rowsOf(call, i);
  const [row] = rows;
  if (!row || rows.length !== 1) {
    throw executionError(`argument ${i + 1} of ${call.name}() must be one series, not ${rows.length}`);
  }
  return row.values;
}

/** A number that does not change: the one of the first step. */
export function numberOf(call: Call, i: number): number {
  return scalarOf(call, i)[0] ?? Number.NaN;
}

export function wholeOf(call: Call, i: number): number {
  const value = numberOf(call, i);
  return Number.isNaN(value) ? 0 : Math.trunc(value);
}

export function stringOf(call: Call, i: number): string {
  const rows = rowsOf(call, i);
  const text = rows.length === 1 ? rows[0]?.text : undefined;
  if (text === undefined) throw executionError(`argument ${i + 1} of ${call.name}() must be a string`);
  return text;
}

export function stringsOf(call: Call, from: number): string[] {
  return call.args.slice(from).map((_, i) => stringOf(call, from + i));
}

/** Names and values in pairs. */
export function pairsOf(call: Call, from: number): [string, string][] {
  const texts = stringsOf(call, from);
  if (texts.length % 2 !== 0)
    throw executionError(`${call.name}() takes its strings in pairs, not ${texts.length} of them`);
  return Array.from({ length: texts.length / 2 }, (_, i) => [texts[2 * i] ?? "", texts[2 * i + 1] ?? ""]);
}

const KEEP_NAME = new Set(
  `ceil clamp clamp_max clamp_min floor interpolate keep_last_value keep_next_value range_avg range_first range_last
  range_linear_regression range_max range_min range_normalize range_quantile range_stddev range_stdvar round running_avg
  running_max running_min smooth_exponential`.split(/\s+/),
);

/** Changes every column; the name goes unless the function keeps what the series means. */
export function mapColumns(call: Call, rows: Row[], change: (values: Float64Array) => void): Row[] {
  const keep = call.expr.keepMetricNames === true || KEEP_NAME.has(call.name);
  for (const row of rows) {
    if (!keep) row.labels = dropName(row.labels);
    change(row.values);
  }
  return rows;
}

/** A function of one number. */
export function pointwise(change: (value: number) => number): Definition {
  return exactly(1, (call) =>
    mapColumns(call, rowsOf(call, 0), (values) => {
      for (let i = 0; i < values.length; i++) values[i] = change(values[i] as number);
    }),
  );
}

/** Arguments are counted first: a wrong call costs nothing. */
export function evaluateTransform(frame: Frame, expr: CallExpr, definition: Definition): Row[] {
  expectArgs(expr, definition.least, definition.most);
  const args = expr.args.map((arg: Expr) => frame.evaluate(frame, arg));
  return definition.apply({ frame, expr, name: expr.name.toLowerCase(), args });
}

export function constant(value: (frame: Frame) => number): Definition {
  return exactly(0, ({ frame }) => [numberRow(frame, value(frame))]);
}
