/**
 * Every bound of a query, by name. A query that meets one fails with an error that says the name and the value;
 * nothing is cut silently.
 */
export interface QueryLimits {
  /** Bytes of query text. Past it: refused before parsing. */
  query_bytes: number;
  /** Brackets, calls and operators inside each other. Past it: a parse error. */
  query_depth: number;
  /** Nodes of the expression after WITH templates are put in. Past it: a parse error (templates can explode). */
  query_nodes: number;
  /** Series one selector may match. Past it: the query fails before a sample is read. */
  series: number;
  /** Samples read by all selectors of one query. Past it: the query fails at the series that crossed it. */
  samples: number;
  /** Points per output series, that is steps in the range. Past it: refused before anything is read. */
  points_per_series: number;
  /** Points per series of a subquery. Past it: the query fails when the subquery is reached. */
  subquery_points: number;
  /** Bytes of columns that one query makes, those it lets go of included. Past it: the query fails. */
  memory_bytes: number;
  /** Wall time of one query. Past it: `timeout`. */
  time_ms: number;
  /** Rollup results kept for repeats, all queries together. Past it: the oldest go. */
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

/** What was too much, and which bound says so. */
export function limitMessage(name: keyof QueryLimits, limit: number, what: string): string {
  return `${what}; the limit ${name} is ${limit}`;
}
