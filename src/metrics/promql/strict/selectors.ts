import { type FloatHistogram, withHint } from "../../histogram/histogram.ts";
import { resetAfter } from "../../histogram/reset.ts";
import { HistogramTable } from "../../histogram/table.ts";
import { histogramAt, isStaleAt } from "../../nan-bits.ts";
import type { Columns, Labels } from "../../source.ts";
import type { Expr, RollupExpr, SelectorExpr } from "../ast.ts";
import { durationMs } from "../durations.ts";
import { executionError } from "../errors.ts";
import { checkAlive, checkPoints, checkSeries, countSamples, type Frame, reframe } from "../frame.ts";
import { reach } from "./boundaries.ts";
import { ABSENT, FLOAT, HISTOGRAM, histogramOf, newRow, putNative, type Row, type Value } from "./values.ts";

/** The subquery step when the query names none. */
const SUBQUERY_STEP_MS = 60_000;

/** A number and its time. */
const SAMPLE_BYTES = 16;

/** Where a selector looks at each step: the moment of `@`, or the step itself, less the offset. */
export interface LookbackWindow {
  /** The end of the window at step `i`. */
  at(i: number): number;
  first_ms: number;
  last_ms: number;
}

export type Evaluate = (frame: Frame, expr: Expr) => Value;

/** `@` comes before the offset: the offset counts from the moment. */
export function lookOf(frame: Frame, rollup: Pick<RollupExpr, "offset" | "moment">): LookbackWindow {
  const offset = rollup.offset ? (durationMs(rollup.offset.text, frame.step_ms) ?? 0) : 0;
  if (rollup.moment) {
    const at = momentMs(frame, rollup.moment) - offset;
    return { at: () => at, first_ms: at, last_ms: at };
  }
  const { start_ms, step_ms, points } = frame;
  const first = start_ms - offset;
  return { at: (i) => first + i * step_ms, first_ms: first, last_ms: first + (points - 1) * step_ms };
}

/** start() and end() are those of the whole query, also inside a subquery. */
function momentMs(frame: Frame, moment: Expr): number {
  if (moment.kind === "number") return Math.round(moment.value * 1000);
  if (moment.kind === "duration") return durationMs(moment.duration.text, 0) ?? 0;
  if (moment.kind === "negate") return -momentMs(frame, moment.arg);
  if (moment.kind === "call" && moment.name.toLowerCase() === "start") return frame.query.grid.start_ms;
  if (moment.kind === "call" && moment.name.toLowerCase() === "end") return frame.query.grid.end_ms;
  throw executionError("after @ a number, start() or end() is expected");
}

/** Samples of a series, the windows of which are to be looked at. */
export interface Samples {
  labels: Labels;
  dropName: boolean;
  columns: Columns;
}

/** Reads one series after the other into the same columns. */
export function eachSeries(
  frame: Frame,
  selector: SelectorExpr,
  after_ms: number,
  to_ms: number,
  take: (s: Samples) => void,
): void {
  const { query } = frame;
  const found = query.source.select({ selector: selector.filters, start_ms: after_ms + 1, end_ms: to_ms });
  checkSeries(query, found.count);
  // MetricsQL has none, also where it shows raw samples.
  const histograms = query.dialect === "promql" ? new HistogramTable() : undefined;
  const columns: Columns = {
    timestamps: new Float64Array(1024),
    values: new Float64Array(1024),
    length: 0,
    ...(histograms ? { histograms } : {}),
  };
  for (const series of found) {
    checkAlive(query);
    columns.length = 0;
    histograms?.clear();
    series.read(columns);
    if (histograms && histograms.length > 0 && query.counted.has(selector)) detectResets(columns, histograms);
    // A histogram counts as many samples as numbers take its memory.
    countSamples(query, columns.length + Math.ceil((histograms?.bytes ?? 0) / SAMPLE_BYTES));
    if (columns.length > 0) take({ labels: series.labels, dropName: false, columns });
  }
}

function detectResets(columns: Columns, histograms: HistogramTable): void {
  let before: FloatHistogram | undefined;
  for (let i = 0; i < columns.length; i++) {
    const histogram = histograms.at(columns.values, i);
    if (!histogram) continue;
    const now = resetAfter(histogram, before);
    if (now !== histogram) histograms.put(columns.values, i, now);
    before = now;
  }
}

/** What a raw sample is. */
export function sampleKind(values: Float64Array, i: number): number {
  if (!Number.isNaN(values[i] as number)) return FLOAT;
  if (histogramAt(values, i) !== undefined) return HISTOGRAM;
  return isStaleAt(values, i) ? ABSENT : FLOAT;
}

/**
 * An instant vector selector: the newest sample of the lookback window, unless it says that the series ended. With
 * `timestamps` the values are the times of those samples, in seconds.
 */
export function evaluateSelector(
  frame: Frame,
  selector: SelectorExpr,
  rollup: Pick<RollupExpr, "offset" | "moment">,
  timestamps: boolean,
): Row[] {
  const window = lookOf(frame, rollup);
  const lookback = frame.query.lookback_ms;
  const rows: Row[] = [];
  const put = timestamps ? putTime : putSample;
  eachSeries(frame, selector, window.first_ms - lookback, window.last_ms, ({ labels, columns }) => {
    const row = newRow(frame, labels, false);
    let to = 0;
    for (let i = 0; i < frame.points; i++) {
      const now = window.at(i);
      while (to < columns.length && (columns.timestamps[to] as number) <= now) to++;
      if (to > 0 && (columns.timestamps[to - 1] as number) > now - lookback) put(frame, row, i, columns, to - 1);
    }
    if (row.present.some((p) => p !== ABSENT)) rows.push(row);
  });
  return rows;
}

function putSample(frame: Frame, row: Row, i: number, columns: Columns, from: number): void {
  const kind = sampleKind(columns.values, from);
  const histogram = kind === HISTOGRAM ? columns.histograms?.at(columns.values, from) : undefined;
  if (histogram) putNative(frame, row, i, histogram);
  else {
    row.present[i] = kind;
    row.values[i] = columns.values[from] as number;
  }
}

function putTime(_frame: Frame, row: Row, i: number, columns: Columns, from: number): void {
  row.present[i] = sampleKind(columns.values, from);
  row.values[i] = (columns.timestamps[from] as number) / 1000;
}

/** The series of a range vector: a selector with a window, or a subquery. */
export function eachRange(
  frame: Frame,
  rollup: RollupExpr,
  evaluate: Evaluate,
  take: (s: Samples, window: LookbackWindow, range_ms: number) => void,
): void {
  const range_ms = durationMs(rollup.window?.text ?? "", frame.step_ms) ?? 0;
  const window = lookOf(frame, rollup);
  const isSubquery = rollup.step !== undefined || rollup.inheritStep === true;
  if (!isSubquery) {
    const inner = innerSelector(rollup.arg);
    const shifted = inner.modifiers
      ? { ...inner.modifiers, ...(rollup.offset ? { offset: rollup.offset } : {}) }
      : rollup;
    const where = inner.modifiers ? lookOf(frame, shifted) : window;
    const { before_ms, after_ms } = reach(rollup.boundary, frame.query.lookback_ms);
    const from_ms = where.first_ms - range_ms - before_ms;
    eachSeries(frame, inner.selector, from_ms, where.last_ms + after_ms, (s) => take(s, where, range_ms));
    return;
  }
  overSubquery(frame, rollup, evaluate, window, range_ms, take);
}

/** `m[5m] offset 1h @ 3` can come as nested nodes when the suffixes were written one by one. */
function innerSelector(expr: Expr): { selector: SelectorExpr; modifiers?: RollupExpr } {
  if (expr.kind === "selector") return { selector: expr };
  if (expr.kind === "rollup" && expr.arg.kind === "selector") return { selector: expr.arg, modifiers: expr };
  throw executionError("a range needs a selector before the brackets");
}

function overSubquery(
  frame: Frame,
  rollup: RollupExpr,
  evaluate: Evaluate,
  window: LookbackWindow,
  range_ms: number,
  take: (s: Samples, window: LookbackWindow, range_ms: number) => void,
): void {
  const step_ms = rollup.step ? (durationMs(rollup.step.text, frame.step_ms) ?? 0) : SUBQUERY_STEP_MS;
  if (step_ms <= 0) throw executionError("the step of a subquery must be longer than 0");
  const from = window.first_ms - range_ms;
  // The first multiple of the step after the window's open end; Go's division rounds towards zero.
  let start_ms = step_ms * Math.trunc(from / step_ms);
  if (start_ms <= from) start_ms += step_ms;
  if (start_ms > window.last_ms) return;
  const grid = { start_ms, end_ms: window.last_ms, step_ms };
  checkPoints(frame.query, grid, "subquery_points");
  const inner = reframe(frame, grid);
  const value = evaluate(inner, rollup.arg);
  const columns: Columns = {
    timestamps: new Float64Array(inner.points),
    values: new Float64Array(inner.points),
    length: 0,
    histograms: new HistogramTable(),
  };
  const rows = value.type === "vector" ? value.rows : value.type === "scalar" ? [scalarRow(inner, value.values)] : [];
  for (const row of rows) {
    checkAlive(frame.query);
    columns.histograms?.clear();
    fillColumns(columns, row, inner);
    countSamples(frame.query, columns.length);
    if (columns.length > 0) take({ labels: row.labels, dropName: row.dropName, columns }, window, range_ms);
  }
}

function scalarRow(frame: Frame, values: Float64Array): Row {
  return { labels: [], dropName: false, values, present: new Uint8Array(frame.points).fill(FLOAT) };
}

function fillColumns(columns: Columns, row: Row, grid: Frame): void {
  let n = 0;
  for (let i = 0; i < grid.points; i++) {
    if (row.present[i] === ABSENT) continue;
    columns.timestamps[n] = grid.start_ms + i * grid.step_ms;
    const histogram = histogramOf(grid, row, i);
    if (histogram) columns.histograms?.put(columns.values, n, withoutReset(histogram));
    else columns.values[n] = row.values[i] as number;
    n++;
  }
  columns.length = n;
}

/** A subquery skips samples: what was known about resets between two of them holds no longer. */
function withoutReset(histogram: FloatHistogram): FloatHistogram {
  return histogram.hint === "gauge" ? histogram : withHint(histogram, "unknown");
}
