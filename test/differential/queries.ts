import type { Dialect } from "#metrics/promql/ast.ts";
import { type Asked, Choices } from "./choices.ts";
import { type DialectOfQueries, Grammar } from "./grammar.ts";
import { METRICSQL } from "./metricsql.ts";
import { PROMQL } from "./promql.ts";

const DIALECTS: Record<Dialect, DialectOfQueries> = { metricsql: METRICSQL, promql: PROMQL };

/** The next query of a dialect, and when it is asked: the same for the same random numbers. */
export function randomQuery(dialect: Dialect, random: () => number): Asked {
  return new Grammar(new Choices(random), DIALECTS[dialect]).asked();
}
