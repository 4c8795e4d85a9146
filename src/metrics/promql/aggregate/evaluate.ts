import type { Labels } from "../../source.ts";
import type { AggregateExpr, CallExpr, Expr } from "../ast.ts";
import { executionError } from "../errors.ts";
import { column, copyRow, type Frame, isEmpty, type Row } from "../frame.ts";
import { isRollup } from "../functions/names.ts";
import { labelsKey } from "../labels.ts";
import { asCall, streamRollup } from "../rollup/evaluate.ts";
import { ACCUMULATORS, type Accumulator } from "./accumulators.ts";
import { full, groupLabels } from "./groups.ts";
import { SELECTIONS } from "./selections.ts";
import { STATISTICS } from "./statistics.ts";

export function evaluateAggregate(frame: Frame, expr: AggregateExpr): Row[] {
  if (expr.args.length === 0) throw executionError(`${expr.name}() needs at least one argument`);
  const make = ACCUMULATORS[expr.name];
  if (make) return accumulate(frame, expr, make);
  if (expr.name === "any") return firstOfEach(frame, expr);
  const args = expr.args.map((arg) => frame.evaluate(frame, arg));
  const definition = STATISTICS[expr.name] ?? SELECTIONS[expr.name];
  if (!definition) throw executionError(`there is no aggregate ${expr.name}`);
  return definition({ frame, expr, args });
}

/** Series that can be taken one at a time are never held together. */
function eachSeries(frame: Frame, arg: Expr, take: (labels: Labels, values: Float64Array) => void): void {
  const call = streamable(arg);
  if (call) streamRollup(frame, call, take);
  else for (const row of frame.evaluate(frame, arg)) take(row.labels, row.values);
}

/** absent_over_time looks at all series together, so it cannot stream. */
function streamable(arg: Expr): CallExpr | undefined {
  if (arg.kind === "call") {
    const name = arg.name.toLowerCase();
    return isRollup(name) && name !== "absent_over_time" ? arg : undefined;
  }
  return arg.kind === "selector" || arg.kind === "rollup" ? asCall(arg) : undefined;
}

/** Groups are made as series come; a series is forgotten once it is added. */
function accumulate(frame: Frame, expr: AggregateExpr, make: (points: number) => Accumulator): Row[] {
  const groups = new Map<string, { labels: Labels; accumulator: Accumulator }>();
  const take = (series: Labels, values: Float64Array): void => {
    if (values.every(Number.isNaN)) return;
    const labels = groupLabels(series, expr.modifier);
    const key = labelsKey(labels);
    let group = groups.get(key);
    if (!group) {
      if (full(groups.size, expr.limit)) return;
      // Not used: it counts the accumulator's column against memory_bytes.
      column(frame);
      group = { labels, accumulator: make(frame.points) };
      groups.set(key, group);
    }
    group.accumulator.add(values);
  };
  for (const arg of expr.args) eachSeries(frame, arg, take);
  return [...groups.values()].map(({ labels, accumulator }) => ({ labels, values: accumulator.finish() }));
}

/** any(): one series of each group, with all its labels; a limit of any size leaves one. */
function firstOfEach(frame: Frame, expr: AggregateExpr): Row[] {
  const groups = new Map<string, Row>();
  const limit = expr.limit === undefined ? undefined : Math.min(1, expr.limit);
  for (const arg of expr.args) {
    eachSeries(frame, arg, (labels, values) => {
      const row: Row = { labels, values };
      const key = labelsKey(groupLabels(labels, expr.modifier));
      if (!groups.has(key) && !full(groups.size, limit) && !isEmpty(row)) groups.set(key, copyRow(row));
    });
  }
  return [...groups.values()];
}
