import type { Dialect } from "../promql/ast.ts";
import { instant, type RollupCache, range } from "../promql/engine.ts";
import { writeResult } from "../promql/json.ts";
import type { QueryLimits } from "../promql/limits.ts";
import type { QueryResult } from "../promql/results.ts";
import type { Matcher, SampleSource } from "../source.ts";
import { TRUNCATED } from "../truncate.ts";

/** A query at one time, or on a grid when it has a step. */
export interface QueryRequest {
  query: string;
  start_ms: number;
  end_ms: number;
  /** Absent for an instant query, which is at `end_ms`. */
  step_ms?: number;
  dialect?: Dialect;
  /** Bypasses the cache. */
  nocache?: boolean;
  limits?: Partial<QueryLimits>;
  /** Maximum number of series; further ones are omitted with a warning. Absent or 0 means all. */
  limit?: number;
  /** Says what the query cost. */
  stats?: boolean;
  /**
   * What every series that is read must match. For queries whose selectors have these matchers already: it covers what is
   * read without a selector, as `info()` does. Cached results do not depend on it.
   */
  within?: readonly Matcher[];
}

/** Cached state of one org. */
export interface Memory {
  cache: RollupCache;
  /** Samples before this are not expected to change; if they do, the cache is cleared. */
  immutable_before_ms: number;
}

/** Evaluates queries in the worker. The result is the HTTP body, built once as bytes. */
export interface Evaluator {
  /**
   * Synchronous and possibly long, so it polls `cancelled` and throws when set. Errors reach the caller with name,
   * message and `details`.
   */
  evaluate(
    source: SampleSource,
    request: QueryRequest,
    cancelled: () => boolean,
    memory: Memory | undefined,
  ): Uint8Array;
}

function firstSeries(result: QueryResult, limit: number | undefined): QueryResult {
  const { data, warnings } = result;
  if (!limit || !("series" in data) || data.series.length <= limit) return result;
  return { ...result, data: { ...data, series: data.series.slice(0, limit) }, warnings: [...warnings, TRUNCATED] };
}

const narrowedSource = (source: SampleSource, within: readonly Matcher[]): SampleSource => ({
  select: (selection) =>
    source.select({ ...selection, selector: selection.selector.map((group) => [...group, ...within]) }),
});

/** The module the worker loads by default. */
export const evaluator: Evaluator = {
  evaluate(source, request, isCancelled, memory) {
    const { query, start_ms, end_ms, step_ms, dialect, nocache, limits, limit, stats, within } = request;
    const input = {
      query,
      source: within ? narrowedSource(source, within) : source,
      isCancelled,
      ...(nocache ? {} : memory),
      ...(dialect ? { dialect } : {}),
      ...(limits ? { limits } : {}),
    };
    const result =
      step_ms === undefined ? instant({ ...input, time_ms: end_ms }) : range({ ...input, start_ms, end_ms, step_ms });
    return writeResult(firstSeries(result, limit), stats);
  },
};
