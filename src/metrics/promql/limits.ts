/**
 * Limits of a query. A query that reaches one fails with an error that has its name and value;
 * no result is truncated silently.
 */
export interface QueryLimits {
  /** Size of the query text. Past it: rejected before parsing. */
  query_bytes: number;
  /** Nesting depth of brackets, calls and operators. Past it: a parse error. */
  query_depth: number;
  /**
   * Nodes of the expression after expansion of WITH templates, which can grow exponentially. Past it: a parse error.
   */
  query_nodes: number;
  /** Series matched by one selector. Past it: the query fails before a sample is read. */
  series: number;
  /** Samples read by all selectors of one query. Past it: the query fails. */
  samples: number;
  /** Points per output series, that is steps in the range. Past it: rejected before anything is read. */
  points_per_series: number;
  /** Points per series of a subquery. Past it: the query fails when the subquery is reached. */
  subquery_points: number;
  /** Total size of columns allocated by one query, including freed ones. Past it: the query fails. */
  memory_bytes: number;
  /** Wall time of one query. Past it: `timeout`. */
  time_ms: number;
  /** Size of the cache of rollup results, for all queries. Past it: the oldest are removed. */
  cache_bytes: number;
}

const MIB = 1024 * 1024;

export const QUERY_LIMITS: QueryLimits = {
  query_bytes: 64 * 1024,
  query_depth: 200,
  query_nodes: 20_000,
  series: 300_000,
  samples: 200_000_000,
  points_per_series: 30_000,
  subquery_points: 100_000,
  memory_bytes: 512 * MIB,
  time_ms: 30_000,
  cache_bytes: 32 * MIB,
};

/** The error of an exceeded limit, with its name. */
export function limitMessage(name: keyof QueryLimits, limit: number, what: string): string {
  return `${what}; the limit ${name} is ${limit}`;
}
