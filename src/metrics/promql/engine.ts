import { type Clock, systemClock } from "#core/clock.ts";
import type { SampleSource } from "../source.ts";
import type { Dialect, Expr } from "./ast.ts";
import { executionError, QueryError } from "./errors.ts";
import { evaluate } from "./evaluate.ts";
import { checkPoints, type Frame, type Grid, isEmpty, type Query, type Row, reframe, timesOf } from "./frame.ts";
import { compareLabels, labelsKey, labelValue, showLabels } from "./labels.ts";
import { QUERY_LIMITS, type QueryLimits } from "./limits.ts";
import { parse } from "./parse.ts";
import type { QueryData, QueryResult, ResultSeries } from "./results.ts";
import type { RollupCache } from "./rollup/cache.ts";
import { runStrict } from "./strict/run.ts";

export { parse } from "./parse.ts";

interface Asked {
  query: string;
  dialect?: Dialect;
  source: SampleSource;
  limits?: Partial<QueryLimits>;
  clock?: Clock;
  isCancelled?: () => boolean;
  cache?: RollupCache;
}

export interface InstantQuery extends Asked {
  time_ms: number;
  /** What a selector without a window looks back. */
  step_ms?: number;
}

export interface RangeQuery extends Asked {
  start_ms: number;
  end_ms: number;
  step_ms: number;
}

export const DEFAULT_STEP_MS = 5 * 60_000;

export function instant(asked: InstantQuery): QueryResult {
  const step_ms = asked.step_ms ?? DEFAULT_STEP_MS;
  return run(asked, { start_ms: asked.time_ms, end_ms: asked.time_ms, step_ms }, true);
}

export function range(asked: RangeQuery): QueryResult {
  if (!(asked.step_ms > 0)) throw new QueryError("bad_data", "the step must be longer than 0");
  if (asked.end_ms < asked.start_ms) throw new QueryError("bad_data", "the end must not lie before the start");
  return run(asked, { start_ms: asked.start_ms, end_ms: asked.end_ms, step_ms: asked.step_ms }, false);
}

function run(asked: Asked, grid: Grid, isInstant: boolean): QueryResult {
  const limits = { ...QUERY_LIMITS, ...asked.limits };
  const dialect = asked.dialect ?? "metricsql";
  const expr = parse(asked.query, dialect, limits);
  const query = newQuery(asked, dialect, limits, grid);
  checkPoints(query, grid, "points_per_series");
  const data = (dialect === "promql" ? runStrict : runMetricsql)(query, grid, expr, isInstant);
  return { data, warnings: [...query.warnings], infos: [...query.infos], samples: query.samples };
}

function newQuery(asked: Asked, dialect: Dialect, limits: QueryLimits, grid: Grid): Query {
  const clock = asked.clock ?? systemClock;
  return {
    text: asked.query,
    dialect,
    source: asked.source,
    limits,
    clock,
    deadline: clock.monotonic() + limits.time_ms,
    isCancelled: asked.isCancelled ?? (() => false),
    lookback_ms: DEFAULT_STEP_MS,
    asked: grid,
    cache: asked.cache,
    samples: 0,
    bytes: 0,
    warnings: new Set(),
    infos: new Set(),
  };
}

function runMetricsql(query: Query, grid: Grid, expr: Expr, isInstant: boolean): QueryData {
  const root: Frame = { query, evaluate, ...grid, points: 0 };
  const frame = reframe(root, grid);
  const rows = evaluate(frame, expr).filter((row) => row.text === undefined && !isEmpty(row));
  refuseDuplicates(rows);
  if (sortsByName(expr)) rows.sort(byName);
  const times = timesOf(frame);
  return { type: isInstant ? "vector" : "matrix", series: rows.map((row) => present(row, times)) };
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

/** The steps that have a value. */
function present(row: Row, times: Float64Array): ResultSeries {
  const { values, labels } = row;
  if (!values.some(Number.isNaN)) return { labels, timestamps: times, values };
  const places = values.map((v) => (Number.isNaN(v) ? 0 : 1));
  return {
    labels,
    timestamps: times.filter((_, i) => places[i] === 1),
    values: values.filter((v) => !Number.isNaN(v)),
  };
}
