import type { Columns, Labels } from "../../source.ts";
import type { Expr, RollupExpr } from "../ast.ts";
import { QueryError } from "../errors.ts";
import { checkSeries, type Frame, type Grid, type Query, reframe, timesOf } from "../frame.ts";
import { compareLabels } from "../labels.ts";
import type { HistogramPoint, QueryData, ResultSeries } from "../results.ts";
import { boundedSamples } from "./bounded-ranges.ts";
import { markCounted } from "./counted.ts";
import { evaluateStrict } from "./evaluate.ts";
import { settleLengths } from "./lengths.ts";
import { eachRange, sampleKind } from "./selectors.ts";
import { FLOAT, histogramOf, isEmpty, mergeSame, type Row } from "./values.ts";

/** A whole query of the strict dialect. */
export function runStrict(query: Query, grid: Grid, parsed: Expr, isInstant: boolean): QueryData {
  const expr = settleLengths(parsed, grid);
  const root: Frame = { query, evaluate: unreachable, ...grid, points: 0 };
  const frame = reframe(root, grid);
  markCounted(expr, query.counted);
  if (expr.kind === "rollup" && expr.window) {
    if (!isInstant)
      throw new QueryError("bad_data", "a range query gives instant vectors and numbers, not range vectors");
    return rawSamples(frame, expr);
  }
  const value = evaluateStrict(frame, expr);
  if (value.type === "string") {
    if (!isInstant) throw new QueryError("bad_data", "a range query cannot give a string");
    return { type: "string", timestamp: grid.start_ms, value: value.text };
  }
  if (value.type === "vector") return present(frame, mergeSame(value.rows), isInstant);
  if (isInstant) return { type: "scalar", timestamp: grid.start_ms, value: value.values[0] ?? Number.NaN };
  return { type: "matrix", series: [{ labels: [], timestamps: timesOf(frame), values: value.values }] };
}

function unreachable(): never {
  throw new Error("the strict dialect has an evaluator of its own");
}

/** Instant vectors keep the order the query gave them; ranges are sorted, as Prometheus sorts them. */
function present(frame: Frame, rows: Row[], isInstant: boolean): QueryData {
  const times = timesOf(frame);
  const filled = rows.filter((row) => !isEmpty(row)).map((row) => toSeries(frame, row, times));
  if (!isInstant) filled.sort((a, b) => compareLabels(a.labels, b.labels));
  return { type: isInstant ? "vector" : "matrix", series: filled };
}

function toSeries(frame: Frame, row: Row, times: Float64Array): ResultSeries {
  const keep = (_: number, i: number): boolean => row.present[i] === FLOAT;
  if (row.present.every((p) => p === FLOAT)) return { labels: row.labels, timestamps: times, values: row.values };
  const histograms: HistogramPoint[] = [];
  for (const [i, timestamp] of times.entries()) {
    const histogram = histogramOf(frame, row, i);
    if (histogram) histograms.push({ timestamp, histogram });
  }
  const numbers = { labels: row.labels, timestamps: times.filter(keep), values: row.values.filter(keep) };
  return histograms.length > 0 ? { ...numbers, histograms } : numbers;
}

/** A range vector as an instant query: the samples of its window. */
export function rawSamples(frame: Frame, expr: RollupExpr): QueryData {
  const series: ResultSeries[] = [];
  eachRange(frame, expr, evaluateStrict, ({ labels, columns }, window, range_ms) => {
    const end = window.at(0);
    if (expr.boundary) {
      const samples = boundedSamples(frame, columns, expr.boundary, end, range_ms);
      const column = (part: 0 | 1): Float64Array => Float64Array.from(samples, (sample) => sample[part]);
      if (samples.length > 0) series.push({ labels, timestamps: column(0), values: column(1) });
      return;
    }
    const one = samplesBetween(labels, columns, end - range_ms, end);
    if (one.timestamps.length > 0 || one.histograms) series.push(one);
  });
  checkSeries(frame.query, series.length);
  return { type: "matrix", series: series.sort((a, b) => compareLabels(a.labels, b.labels)) };
}

function samplesBetween(labels: Labels, columns: Columns, after_ms: number, end_ms: number): ResultSeries {
  const times: number[] = [];
  const values: number[] = [];
  const histograms: HistogramPoint[] = [];
  for (let i = 0; i < columns.length; i++) {
    const timestamp = columns.timestamps[i] as number;
    if (timestamp <= after_ms || timestamp > end_ms) continue;
    const histogram = columns.histograms?.at(columns.values, i);
    if (histogram) histograms.push({ timestamp, histogram });
    if (sampleKind(columns.values, i) !== FLOAT) continue;
    times.push(timestamp);
    values.push(columns.values[i] as number);
  }
  const numbers = { labels, timestamps: Float64Array.from(times), values: Float64Array.from(values) };
  return histograms.length > 0 ? { ...numbers, histograms } : numbers;
}
