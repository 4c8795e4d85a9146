/** Throws queries at the parser and the evaluators: each ends with a result or a QueryError, and soon. */
import type { Dialect, Expr } from "#metrics/promql/ast.ts";
import { instant, parse, print, QueryError, range } from "#metrics/promql/engine.ts";
import { memorySource } from "#metrics/promql/memory-source.ts";
import { generateQuery, mutate, type Random } from "./generate.ts";

const LIMITS = {
  query_nodes: 2_000,
  samples: 1_000_000,
  subquery_points: 2_000,
  memory_bytes: 32 * 2 ** 20,
  time_ms: 2_000,
};

const source = memorySource(
  ["web", "api", "db"].flatMap((app, n) =>
    ["0.1", "1", "+Inf"].map((le) => ({
      labels: ["__name__", n === 2 ? "up" : "latency_bucket", "app", app, "le", le],
      timestamps: Float64Array.from({ length: 40 }, (_, i) => i * 15_000),
      values: Float64Array.from({ length: 40 }, (_, i) => (i * (n + 1)) % 17),
    })),
  ),
);

interface Fuzzed {
  inputs: number;
  parsed: number;
  evaluated: number;
}

/** Only a QueryError is a refusal; anything else goes on as it was thrown. */
function mustBeRefusal(error: unknown): void {
  if (!(error instanceof QueryError)) throw error;
}

export function fuzz(random: Random, inputs: number): Fuzzed {
  const seen: Fuzzed = { inputs, parsed: 0, evaluated: 0 };
  for (let n = 0; n < inputs; n++) {
    const generated = generateQuery(random, 1 + Math.floor(random() * 4));
    const query = n % 2 === 0 ? generated : mutate(random, generated);
    try {
      one(query, n, seen);
    } catch (error) {
      throw new Error(`query ${JSON.stringify(query)}`, { cause: error });
    }
  }
  return seen;
}

/** The tree without places and the spelling of numbers. */
export function shape(node: unknown): string {
  if (Array.isArray(node)) return `[${node.map(shape).join()}]`;
  if (typeof node !== "object" || node === null) return typeof node === "number" ? String(node) : JSON.stringify(node);
  const isNumber = "kind" in node && node.kind === "number";
  const fields = Object.entries(node).filter(
    ([key, value]) => key !== "at" && !(isNumber && key === "text") && value !== undefined,
  );
  return `{${fields
    .sort(([x], [y]) => (x < y ? -1 : 1))
    .map(([key, value]) => `${key}:${shape(value)}`)
    .join()}}`;
}

function one(query: string, n: number, seen: Fuzzed): void {
  const dialect = n % 5 === 0 ? "promql" : "metricsql";
  let expr: Expr;
  try {
    expr = parse(query, dialect);
  } catch (error) {
    mustBeRefusal(error);
    return;
  }
  seen.parsed++;
  mustPrint(expr, dialect);
  try {
    const limits = LIMITS;
    if (n % 3 === 0) instant({ query, dialect, source, limits, time_ms: 600_000 });
    else range({ query, dialect, source, limits, start_ms: 0, end_ms: 600_000, step_ms: 60_000 });
    seen.evaluated++;
  } catch (error) {
    mustBeRefusal(error);
  }
}

function mustPrint(expr: Expr, dialect: Dialect): void {
  const text = print(expr, dialect);
  if (shape(parse(text, dialect)) !== shape(expr)) throw new Error(`prints ${text}, which is another tree`);
}
