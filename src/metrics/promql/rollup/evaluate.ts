import type { Columns, Labels, Series } from "../../source.ts";
import type { CallExpr, Expr, RollupExpr, SelectorExpr } from "../ast.ts";
import { durationMs } from "../durations.ts";
import { executionError } from "../errors.ts";
import {
  checkAlive,
  checkPoints,
  checkSeries,
  column,
  countSamples,
  type Frame,
  type Grid,
  type Row,
  reframe,
} from "../frame.ts";
import { dropName, setLabel } from "../labels.ts";
import { type Plan, planRollup, scalarArgument, seriesArgument } from "./plans.ts";
import { dropNaN } from "./prepare.ts";
import type { Steps } from "./steps.ts";
import { rollUp, rollUpAtOnce } from "./window.ts";

/** How far before the window a previous sample may lie. */
export const SILENCE_MS = 5 * 60_000;

/** Receives the rows of a rollup one by one; rows that it does not keep are never in memory together. */
type Sink = (labels: Labels, values: Float64Array) => void;

/** Keeps every row. */
function collect(frame: Frame): { rows: Row[]; sink: Sink } {
  const rows: Row[] = [];
  const sink: Sink = (labels, values) => {
    const copy = column(frame);
    copy.set(values);
    rows.push({ labels, values: copy });
  };
  return { rows, sink };
}

/** A rollup function, or a bare selector, which is default_rollup. */
export function evaluateRollup(frame: Frame, call: CallExpr): Row[] {
  const { rows, sink } = collect(frame);
  streamRollup(frame, call, sink);
  if (call.name.toLowerCase() === "absent_over_time") return absentEverywhere(frame, call, rows);
  return rows;
}

/** A selector on its own is a rollup too: the last value. */
export function asCall(expr: Expr): CallExpr {
  return { kind: "call", at: expr.at, name: "default_rollup", args: [expr] };
}

export function streamRollup(frame: Frame, call: CallExpr, sink: Sink): void {
  const plan = planRollup(frame, call);
  const arg = call.args[seriesArgument(call)];
  if (!arg) throw executionError(`${call.name}() needs a series`);
  const rollup: RollupExpr = arg.kind === "rollup" ? arg : { kind: "rollup", at: arg.at, arg };
  if (rollup.moment === undefined) {
    evaluateShifted(frame, plan, rollup, sink);
    return;
  }
  const at = scalarArgument(frame, rollup.moment, "@")[0] ?? Number.NaN;
  if (Number.isNaN(at)) throw executionError("the time after @ is not a number");
  const at_ms = Math.trunc(at * 1000);
  const once = reframe(frame, { start_ms: at_ms, end_ms: at_ms, step_ms: frame.step_ms });
  const spread = column(frame);
  evaluateShifted(once, plan, rollup, (labels, values) => sink(labels, spread.fill(values[0] as number)));
}

/** The frame moved by the offset; results keep their places. */
function evaluateShifted(frame: Frame, plan: Plan, rollup: RollupExpr, sink: Sink): void {
  // A candle is named by the time it begins, so it looks ahead by its step.
  const ahead_ms = plan.name === "rollup_candlestick" ? frame.step_ms : 0;
  const offset_ms = (rollup.offset ? (durationMs(rollup.offset.text, frame.step_ms) ?? 0) : 0) - ahead_ms;
  const moved = reframe(frame, {
    start_ms: frame.start_ms - offset_ms,
    end_ms: frame.end_ms - offset_ms,
    step_ms: frame.step_ms,
  });
  const isSubquery = rollup.step !== undefined || rollup.inheritStep === true;
  if (rollup.arg.kind === "selector" && !isSubquery) overSelector(moved, plan, rollup.arg, rollup, sink);
  else overSubquery(moved, plan, rollup, sink);
}

/** 0 when the query names none; the step or the series then decides. */
function windowOf(frame: Frame, rollup: RollupExpr): number {
  if (!rollup.window) return 0;
  const window_ms = durationMs(rollup.window.text, frame.step_ms) ?? 0;
  if (window_ms < 0) throw executionError(`the window ${rollup.window.text} is negative`);
  return window_ms;
}

function overSelector(frame: Frame, plan: Plan, selector: SelectorExpr, rollup: RollupExpr, sink: Sink): void {
  if (selector.filters.length === 0 || selector.filters.every((group) => group.length === 0)) return;
  const { query } = frame;
  const window_ms = windowOf(frame, rollup);
  const reach = Math.max(window_ms, frame.step_ms) + SILENCE_MS;
  const found = query.source.select({
    selector: selector.filters,
    start_ms: frame.start_ms - reach,
    end_ms: frame.end_ms,
  });
  checkSeries(query, found.count);
  if (plan.name === "default_rollup" && isInstant(frame)) {
    newestOfEach(frame, found, window_ms, sink);
    return;
  }
  const runner = makeRunner(frame, plan, window_ms);
  const samples = scratch();
  for (const series of found) {
    checkAlive(query);
    readSeries(series, samples);
    countSamples(query, samples.length);
    if (samples.length > 0) runner(series.labels, samples, sink);
  }
}

/** The single step of an instant query; a range can come down to one step too, by `@` or by the cache. */
function isInstant(frame: Frame): boolean {
  const { start_ms, end_ms } = frame.query.grid;
  return frame.points === 1 && start_ms === end_ms;
}

/** The newest sample of each series, which a source knows without reading the others. */
function newestOfEach(frame: Frame, found: Iterable<Series>, window_ms: number, sink: Sink): void {
  const length = window_ms > 0 ? window_ms : frame.step_ms;
  const values = new Float64Array(1);
  for (const series of found) {
    checkAlive(frame.query);
    const sample = series.newest(frame.start_ms - length, frame.start_ms);
    countSamples(frame.query, 1);
    if (!sample) continue;
    values[0] = sample.value;
    sink(series.labels, values);
  }
}

function scratch(): Columns {
  return { timestamps: new Float64Array(1024), values: new Float64Array(1024), length: 0 };
}

/** The same columns for every series: a query over a million of them allocates two arrays. */
function readSeries(series: Series, into: Columns): void {
  into.length = 0;
  series.read(into);
}

/** What to do with the samples of one series. */
function makeRunner(
  frame: Frame,
  plan: Plan,
  window_ms: number,
): (labels: Labels, samples: Columns, sink: Sink) => void {
  const steps: Steps = {
    start_ms: frame.start_ms,
    step_ms: frame.step_ms,
    points: frame.points,
    window_ms,
    adjusts: plan.adjusts,
    instant: isInstant(frame),
  };
  const values = column(frame);
  return (original, samples, sink) => {
    const labels = plan.keepsName ? original : dropName(original);
    if (!plan.keepsStale) dropNaN(samples);
    plan.prepare?.(samples);
    if (plan.spread) {
      spreadRows(frame, plan.spread, steps, labels, samples, sink);
      return;
    }
    for (const { tag, kernel, batch } of plan.outputs) {
      if (batch) rollUpAtOnce(samples, steps, batch, values);
      else rollUp(samples, steps, kernel, values);
      sink(tag === undefined ? labels : setLabel(labels, "rollup", tag), values);
    }
  };
}

/** Columns are made as values turn up, and are empty where they did not. */
function spreadRows(
  frame: Frame,
  spread: NonNullable<Plan["spread"]>,
  steps: Steps,
  labels: Labels,
  samples: Columns,
  sink: Sink,
): void {
  const columns = new Map<string, Float64Array>();
  const unused = new Float64Array(steps.points);
  rollUp(
    samples,
    steps,
    (w) => {
      spread.kernel(w, (value, number) => {
        let values = columns.get(value);
        if (!values) {
          values = column(frame, Number.NaN);
          columns.set(value, values);
        }
        values[w.index] = number;
      });
      return 0;
    },
    unused,
  );
  for (const [value, values] of columns) sink(setLabel(labels, spread.label, value), values);
}

/** Grid points are multiples of the step, so that the same subquery gives the same points in every frame. */
function align(grid: Grid): Grid {
  const late = grid.end_ms % grid.step_ms;
  return {
    start_ms: grid.start_ms - (grid.start_ms % grid.step_ms),
    end_ms: late > 0 ? grid.end_ms + grid.step_ms - late : grid.end_ms,
    step_ms: grid.step_ms,
  };
}

/**
 * The inner expression on its own grid, its rows used as samples. The grid reaches one step past the end, because a
 * function may need the sample after the window.
 */
function overSubquery(frame: Frame, plan: Plan, rollup: RollupExpr, sink: Sink): void {
  const step_ms = rollup.step ? (durationMs(rollup.step.text, frame.step_ms) ?? 0) : frame.step_ms;
  if (step_ms <= 0) throw executionError("the step of a subquery must be longer than 0");
  const window_ms = windowOf(frame, rollup);
  const grid = align({
    start_ms: frame.start_ms - window_ms - step_ms - SILENCE_MS,
    end_ms: frame.end_ms + step_ms,
    step_ms,
  });
  checkPoints(frame.query, grid, "subquery_points");
  const inner = reframe(frame, grid);
  const rows = frame.evaluate(inner, rollup.arg);
  const runner = makeRunner(frame, plan, window_ms);
  const samples: Columns = {
    timestamps: new Float64Array(inner.points),
    values: new Float64Array(inner.points),
    length: 0,
  };
  for (const row of rows) {
    checkAlive(frame.query);
    countSamples(frame.query, inner.points);
    fill(samples, row, inner);
    runner(row.labels, samples, sink);
  }
}

/** The row as samples, without the steps that have no value. */
function fill(samples: Columns, row: Row, grid: Frame): void {
  let n = 0;
  for (let i = 0; i < grid.points; i++) {
    const value = row.values[i] as number;
    if (Number.isNaN(value)) continue;
    samples.values[n] = value;
    samples.timestamps[n] = grid.start_ms + i * grid.step_ms;
    n++;
  }
  samples.length = n;
}

/** One row: 1 where no series has a sample. Its labels are those of the selector. */
function absentEverywhere(frame: Frame, call: CallExpr, rows: Row[]): Row[] {
  const values = column(frame, 1);
  for (const row of rows) {
    for (let i = 0; i < values.length; i++) if (Number.isNaN(row.values[i] as number)) values[i] = Number.NaN;
  }
  const arg = call.args[0];
  return [{ labels: absentLabels(arg?.kind === "rollup" ? arg.arg : arg), values }];
}

/** The labels a series would surely have if the selector matched one. */
export function absentLabels(expr: Expr | undefined): Labels {
  if (expr?.kind !== "selector" || expr.filters.length !== 1) return [];
  let labels: Labels = [];
  for (const m of expr.filters[0] ?? []) {
    if (m.op === "=" && m.name !== "__name__") labels = setLabel(labels, m.name, m.value);
  }
  return labels;
}
