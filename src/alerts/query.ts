/** Runs the queries of rules and writes recorded series, in the metrics engine of one organization. */
import { BatchBuilder, spell } from "#metrics/batch-builder.ts";
import type { MetricsEngine } from "#metrics/engine/engine.ts";
import type { Dialect } from "#metrics/promql/ast.ts";
import type { Matcher } from "#metrics/source.ts";
import { ALERT_LIMITS } from "./limits.ts";
import type { Append } from "./rules/group.ts";
import type { QueryFunction, Sample } from "./rules/types.ts";

type Engine = Pick<MetricsEngine, "query" | "append">;

interface Response {
  data: { resultType: string; result: { metric: Record<string, string>; value?: [number, string] }[] };
}

export interface QueryScope {
  org_id: string;
  /** Restricts every selector to the series of this app. */
  app_name: string | null;
  /** Undefined where the engine knows only one. */
  dialect: Dialect | undefined;
}

export function queryFunction(engine: () => Engine, { org_id, app_name, dialect }: QueryScope): QueryFunction {
  const within = app_name === null ? undefined : ({ name: "app", op: "=", value: app_name } as const);
  const narrow = within ? narrowing(within, dialect ?? "metricsql") : async (expr: string) => expr;
  return async (expr, at_ms) => {
    const request = {
      query: await narrow(expr),
      start_ms: at_ms,
      end_ms: at_ms,
      limits: { time_ms: ALERT_LIMITS.query_ms },
      ...(dialect ? { dialect } : {}),
      ...(within ? { within: [within] } : {}),
    };
    const bytes = await engine().query(org_id, request);
    return samplesOf((JSON.parse(new TextDecoder().decode(bytes)) as Response).data);
  };
}

function samplesOf({ resultType, result }: Response["data"]): Sample[] {
  if (resultType === "scalar") return [{ labels: {}, value: numberOf((result as unknown as [number, string])[1]) }];
  if (resultType !== "vector") throw new Error("rule result is not a vector or scalar");
  return result.map(({ metric, value }) => {
    if (!value)
      throw new Error("a rule takes numbers: a native histogram needs a function such as histogram_quantile()");
    return { labels: metric, value: numberOf(value[1]) };
  });
}

const WORDS: Record<string, number> = {
  NaN: Number.NaN,
  "+Inf": Number.POSITIVE_INFINITY,
  "-Inf": Number.NEGATIVE_INFINITY,
};
const numberOf = (text: string): number => WORDS[text] ?? Number(text);

/** Narrows expressions once; a rule's expression is always the same. */
function narrowing(within: Matcher, dialect: Dialect): (expr: string) => Promise<string> {
  const known = new Map<string, string>();
  return async (expr) => {
    const { narrowed } = await import("#metrics/promql/narrow.ts");
    const found = known.get(expr) ?? narrowed(expr, dialect, within);
    if (known.size < ALERT_LIMITS.rules_per_file) known.set(expr, found);
    return found;
  };
}

export function appendFunction(engine: () => Engine, org_id: string): Append {
  return async (samples, ended, at_ms) => {
    if (samples.length === 0 && ended.length === 0) return;
    const batch = new BatchBuilder();
    for (const { labels, value } of samples) batch.pushValue(encoded(labels), at_ms, value);
    for (const labels of ended) batch.end(encoded(labels), at_ms);
    const { dropped } = await engine().append(org_id, { ...batch.build(), counted: true });
    if (dropped > 0)
      throw new Error(`${dropped} samples of the rule were not stored; /api/v1/status/tsdb says which limit`);
  };
}

const encoded = ({ __name__ = "", ...labels }: Readonly<Record<string, string>>): Uint8Array => spell(__name__, labels);
