import type { Clock } from "#core/clock.ts";
import type { HistogramTable } from "../histogram/table.ts";
import type { Labels, SampleSource } from "../source.ts";
import type { Dialect, Expr } from "./ast.ts";
import { executionError, QueryError } from "./errors.ts";
import { NO_LABELS } from "./labels.ts";
import { limitMessage, type QueryLimits } from "./limits.ts";
import type { RollupCache } from "./rollup/cache.ts";

/** One series over the steps of a frame. In MetricsQL NaN means that there is no value. */
export interface Row {
  labels: Labels;
  values: Float64Array;
  /** Set when the row is a string literal. */
  text?: string;
}

/** The resources a running query has used, and its cancellation. One per query, shared by all its frames. */
export interface Query {
  readonly text: string;
  readonly dialect: Dialect;
  readonly source: SampleSource;
  readonly limits: QueryLimits;
  readonly clock: Clock;
  readonly deadline: number;
  readonly isCancelled: () => boolean;
  readonly lookback_ms: number;
  /** The query's own grid; subqueries and `@` have other grids, but start(), end() and step() mean this one. */
  readonly grid: Grid;
  readonly cache: RollupCache | undefined;
  /** No sample older than this will be written any more; results before it can be cached. */
  readonly immutable_before_ms: number;
  /** Series that its selectors matched, each counted as often as it is read. */
  series: number;
  samples: number;
  bytes: number;
  /** The native histograms that rows refer to. */
  readonly histograms: HistogramTable;
  /** Selectors whose native histograms are only counted. */
  readonly counted: Set<Expr>;
  readonly warnings: Set<string>;
  readonly infos: Set<string>;
}

export interface Grid {
  start_ms: number;
  end_ms: number;
  step_ms: number;
}

/** A grid to evaluate on. */
export interface Frame extends Grid {
  readonly query: Query;
  readonly points: number;
  /** Evaluates another expression; handed down so that functions need not import the evaluator. */
  readonly evaluate: (frame: Frame, expr: Expr) => Row[];
}

/** The same query on another grid: what a subquery, an offset or `@` needs. */
export function reframe(frame: Frame, grid: Grid): Frame {
  const points = Math.floor((grid.end_ms - grid.start_ms) / grid.step_ms) + 1;
  return { query: frame.query, evaluate: frame.evaluate, ...grid, points };
}

export function timesOf(frame: Grid & { points: number }): Float64Array {
  const times = new Float64Array(frame.points);
  for (let i = 0; i < frame.points; i++) times[i] = frame.start_ms + i * frame.step_ms;
  return times;
}

/** Memory of results is counted as it is taken, and never given back. */
export function countBytes(query: Query, bytes: number): void {
  query.bytes += bytes;
  if (query.bytes > query.limits.memory_bytes) {
    const used = `the query holds more than ${query.limits.memory_bytes} bytes of results`;
    throw executionError(limitMessage("memory_bytes", query.limits.memory_bytes, used));
  }
}

/** A column of the frame's length, counted against `memory_bytes`. */
export function column(frame: Frame, fill?: number): Float64Array {
  countBytes(frame.query, frame.points * 8);
  const values = new Float64Array(frame.points);
  return fill === undefined || fill === 0 ? values : values.fill(fill);
}

export function numberRow(frame: Frame, value: number): Row {
  return { labels: NO_LABELS, values: column(frame, value) };
}

export function copyRow(row: Row, labels: Labels = row.labels): Row {
  return { labels, values: row.values.slice() };
}

/** Called once per series: cheap, and often enough to stop soon after the client disconnects. */
export function checkAlive(query: Query): void {
  if (query.isCancelled()) throw new QueryError("canceled", "the query was cancelled");
  if (query.clock.monotonic() > query.deadline) {
    throw new QueryError("timeout", limitMessage("time_ms", query.limits.time_ms, "the query takes too long"));
  }
}

/** Samples are counted as they are read, so a query stops in the middle and not at its end. */
export function countSamples(query: Query, samples: number): void {
  query.samples += samples;
  if (query.samples > query.limits.samples) {
    const what = `the query reads more than ${query.limits.samples} samples`;
    throw executionError(limitMessage("samples", query.limits.samples, what));
  }
}

export function checkSeries(query: Query, series: number): void {
  if (series > query.limits.series) {
    throw executionError(limitMessage("series", query.limits.series, `a selector matches ${series} series`));
  }
  query.series += series;
}

/** Checked before a column of that length is made. */
export function checkPoints(query: Query, grid: Grid, name: "points_per_series" | "subquery_points"): void {
  const points = Math.floor((grid.end_ms - grid.start_ms) / grid.step_ms) + 1;
  if (points > query.limits[name]) {
    throw new QueryError(
      "bad_data",
      limitMessage(name, query.limits[name], `the range has ${points} steps; make the step longer`),
    );
  }
}

export function isEmpty(row: Row): boolean {
  return row.values.every(Number.isNaN);
}

/** A single series without labels: what arithmetic treats as a number. */
export function isScalar(rows: Row[]): boolean {
  return rows.length === 1 && rows[0]?.labels.length === 0;
}
