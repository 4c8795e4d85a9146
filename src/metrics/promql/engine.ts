import { type Clock, systemClock } from "#core/clock.ts";
import { HistogramTable } from "../histogram/table.ts";
import type { SampleSource } from "../source.ts";
import { children, type Dialect, type Expr, type RollupExpr, type SelectorExpr } from "./ast.ts";
import { executionError, QueryError, refuseTooDeep } from "./errors.ts";
import { evaluate } from "./evaluate.ts";
import { checkPoints, type Frame, type Grid, isEmpty, type Query, type Row, reframe, timesOf } from "./frame.ts";
import { compareLabels, labelsKey, labelValue, showLabels } from "./labels.ts";
import { QUERY_LIMITS, type QueryLimits } from "./limits.ts";
import { parse } from "./parse.ts";
import type { QueryData, QueryResult, ResultSeries } from "./results.ts";
import type { RollupCache } from "./rollup/cache.ts";
import { rawSamples, runStrict } from "./strict/run.ts";

export { QueryError } from "./errors.ts";
export { writeResult } from "./json.ts";
export { parse } from "./parse.ts";
export { print } from "./printer.ts";
export type { QueryData, QueryResult, ResultSeries } from "./results.ts";
export { RollupCache } from "./rollup/cache.ts";

interface QueryOptions {
  query: string;
  dialect?: Dialect;
  source: SampleSource;
  limits?: Partial<QueryLimits>;
  clock?: Clock;
  isCancelled?: () => boolean;
  /** How long a sample of an instant vector counts in the strict dialect: five minutes unless said otherwise. */
  lookback_ms?: number;
  /** Caches rollup results between queries, for the steps before `immutable_before_ms`. */
  cache?: RollupCache;
  immutable_before_ms?: number;
}

export interface InstantQuery extends QueryOptions {
  time_ms: number;
  /** What a selector without a window looks back. */
  step_ms?: number;
}

export interface RangeQuery extends QueryOptions {
  start_ms: number;
  end_ms: number;
  step_ms: number;
}

const DEFAULT_STEP_MS = 5 * 60_000;

export function instant(query: InstantQuery): QueryResult {
  const step_ms = query.step_ms ?? DEFAULT_STEP_MS;
  return run(query, { start_ms: query.time_ms, end_ms: query.time_ms, step_ms }, true);
}

export function range(query: RangeQuery): QueryResult {
  if (!(query.step_ms > 0)) throw new QueryError("bad_data", "the step must be longer than 0");
  if (query.end_ms < query.start_ms) throw new QueryError("bad_data", "the end must not lie before the start");
  return run(query, { start_ms: query.start_ms, end_ms: query.end_ms, step_ms: query.step_ms }, false);
}

function run(options: QueryOptions, grid: Grid, isInstant: boolean): QueryResult {
  const limits = { ...QUERY_LIMITS, ...options.limits };
  const { clock = systemClock } = options;
  const began = clock.monotonic();
  const dialect = options.dialect ?? "metricsql";
  const expr = parse(options.query, dialect, limits);
  const prepare_ms = clock.monotonic() - began;
  const query = newQuery(options, dialect, limits, grid);
  checkPoints(query, grid, "points_per_series");
  const evaluateWhole = dialect === "promql" ? runStrict : runMetricsql;
  const data = refuseTooDeep(() => evaluateWhole(query, grid, expr, isInstant));
  const { series, samples, bytes, warnings, infos } = query;
  const cost = { series, values: bytes / 8, prepare_ms, total_ms: clock.monotonic() - began };
  return { data, warnings: [...warnings], infos: [...infos], samples, cost };
}

function newQuery(options: QueryOptions, dialect: Dialect, limits: QueryLimits, grid: Grid): Query {
  const clock = options.clock ?? systemClock;
  return {
    text: options.query,
    dialect,
    source: options.source,
    limits,
    clock,
    deadline: clock.monotonic() + limits.time_ms,
    isCancelled: options.isCancelled ?? (() => false),
    lookback_ms: options.lookback_ms ?? DEFAULT_STEP_MS,
    grid,
    cache: options.cache,
    immutable_before_ms: options.immutable_before_ms ?? Number.NEGATIVE_INFINITY,
    series: 0,
    samples: 0,
    bytes: 0,
    histograms: new HistogramTable(),
    counted: new Set(),
    warnings: new Set(),
    infos: new Set(),
  };
}

function runMetricsql(query: Query, grid: Grid, expr: Expr, isInstant: boolean): QueryData {
  const root: Frame = { query, evaluate, ...grid, points: 0 };
  const frame = reframe(root, grid);
  if (isInstant && isRawRange(expr)) return rawSamples(frame, expr);
  const rows = evaluate(frame, expr).filter((row) => row.text === undefined && !isEmpty(row));
  refuseDuplicates(rows);
  if (sortsByName(expr)) rows.sort(byName);
  const times = timesOf(frame);
  const shared = new Map<string, Float64Array>();
  return { type: isInstant ? "vector" : "matrix", series: rows.map((row) => present(row, times, shared)) };
}

/** `metric[5m]` alone, as an instant query, returns the raw samples. */
function isRawRange(expr: Expr): expr is RollupExpr {
  if (expr.kind !== "rollup" || expr.arg.kind !== "selector") return false;
  return expr.window !== undefined && !expr.step && !expr.inheritStep && !expr.moment;
}

function refuseDuplicates(rows: Row[]): void {
  const seen = new Set<string>();
  for (const { labels } of rows) {
    const key = labelsKey(labels);
    if (seen.has(key)) throw executionError(`duplicate output timeseries: ${showLabels(labels)}`);
    seen.add(key);
  }
}

function byName(a: Row, b: Row): number {
  const left = labelValue(a.labels, "__name__");
  const right = labelValue(b.labels, "__name__");
  if (left !== right) return left < right ? -1 : 1;
  return compareLabels(a.labels, b.labels);
}

const ORDERED = /^(sort|sort_desc|sort_by_label.*|limit_offset|(top|bottom)k.*|outliersk)$/;

/** Results come sorted, unless the query itself is about order. */
function sortsByName(expr: Expr): boolean {
  if (expr.kind === "call" || expr.kind === "aggregate") return !ORDERED.test(expr.name.toLowerCase());
  return !(expr.kind === "binary" && expr.op === "or");
}

/** The steps that have a value. Series with the same gaps at their ends share their list of timestamps. */
function present(row: Row, times: Float64Array, shared: Map<string, Float64Array>): ResultSeries {
  const { values, labels } = row;
  let first = 0;
  let last = values.length - 1;
  while (Number.isNaN(values[first] as number)) first++;
  while (Number.isNaN(values[last] as number)) last--;
  const inner = values.subarray(first, last + 1);
  const key = `${first} ${last}`;
  const timestamps = shared.get(key) ?? times.subarray(first, last + 1);
  shared.set(key, timestamps);
  const count = countOf(inner);
  if (count === inner.length) return { labels, timestamps, values: inner };
  const samples = { labels, timestamps: new Float64Array(count), values: new Float64Array(count) };
  for (let i = 0, at = 0; at < count; i++) {
    const value = inner[i] as number;
    if (Number.isNaN(value)) continue;
    samples.values[at] = value;
    samples.timestamps[at++] = timestamps[i] as number;
  }
  return samples;
}

/** How many are values. A plain loop: large answers have hundreds of thousands of points. */
function countOf(values: Float64Array): number {
  let count = 0;
  for (let i = 0; i < values.length; i++) if (!Number.isNaN(values[i] as number)) count++;
  return count;
}

/** The selectors of a query: what it reads, for callers that watch or restrict it. */
export function selectorsOf(expr: Expr): SelectorExpr[] {
  return expr.kind === "selector" ? [expr] : children(expr).flatMap(selectorsOf);
}
