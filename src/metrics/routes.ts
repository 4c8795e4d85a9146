import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { VERSION } from "#core/version.ts";
import { orgOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { builtinMetadata } from "./builtin/catalogue.ts";
import type { MetricsEngine } from "./engine/engine.ts";
import type { QueryRequest } from "./engine/evaluator.ts";
import { answering } from "./failures.ts";
import { labelNameOf, selectorOf, stepOf, timeOf } from "./params.ts";
import { QUERY_LIMITS } from "./promql/limits.ts";
import type { PushParts } from "./push/receiver.ts";
import { pushRoutes } from "./push/routes.ts";
import type { TargetState } from "./scrape/scraper.ts";
import { statusRoutes } from "./status-routes.ts";
import { targetRoutes } from "./target-routes.ts";
import { firstOf } from "./truncate.ts";
import type { Scope } from "./tsdb/index/scope.ts";

interface Parts extends PushParts {
  engine(): MetricsEngine;
  clock: Clock;
  /** State of an organization's scrape targets. */
  targets(org_id: string): readonly TargetState[];
}

const text = Type.Optional(Type.String());
const list = Type.Optional(Type.Array(Type.String()));
const dialect = Type.Optional(
  Type.Union([Type.Literal("metricsql"), Type.Literal("promql")], { description: "`promql` is strict Prometheus 3." }),
);
const nocache = Type.Optional(Type.Boolean({ description: "Do not use the query cache." }));
const limit = Type.Optional(
  Type.Integer({ minimum: 0, description: "Maximum number; a warning is added when there are more. 0: all." }),
);
const stats = Type.Optional(
  Type.String({
    description:
      "Any text, such as `all`: what the query cost, in `data.stats` as Prometheus says it (`samples.totalQueryableSamples`, `timings`), and in `stats` the series, the time and the limits.",
  }),
);
const InstantQuery = Type.Object({
  query: Type.String(),
  time: text,
  step: text,
  timeout: text,
  limit,
  dialect,
  nocache,
  stats,
});
const RangeQuery = Type.Object({
  query: Type.String(),
  start: Type.String(),
  end: Type.String(),
  step: Type.String(),
  timeout: text,
  limit,
  dialect,
  nocache,
  stats,
});
const ScopeQuery = Type.Object({
  "match[]": list,
  start: text,
  end: text,
  limit,
});
const StatusQuery = Type.Object({
  topN: Type.Optional(Type.Integer({ minimum: 1 })),
  focusLabel: text,
  "match[]": list,
});
const JSON_BYTES = { status: 200, type: "application/json" } as const;
const BASE = "/prometheus/:org_slug";
const COMMON = { part: "metrics", access: "read org", scheme: "metrics", style: "prometheus" } as const;
const QUERY_ERRORS = ["query_invalid", "query_failed", "query_timeout", "query_canceled"] as const;
const NO_MATCH = 'match[] is required: a selector such as up{app="web"}';
const DAY_MS = 86_400_000;

/** The Prometheus-compatible query API of an organization, on that organization's own database. */
export function metricsRoutes(parts: Parts): Row[] {
  return [
    ...queryRoutes(parts),
    ...labelRoutes(parts),
    ...grafanaRoutes(parts),
    ...targetRoutes(parts.targets),
    ...statusRoutes(parts),
    ...pushRoutes(parts),
  ];
}

/** Clients send the same queries as GET, or as POST with a form. */
function both(row: Row): Row[] {
  return [row, { ...row, method: "POST" }];
}

function queryRoutes({ engine, clock }: Parts): Row[] {
  return [
    ...both(
      route(`GET ${BASE}/api/v1/query`, {
        ...COMMON,
        summary: "Evaluate a query at one time",
        query: InstantQuery,
        response: JSON_BYTES,
        errors: QUERY_ERRORS,
        async handle({ query, signal, ...admitted }) {
          const end_ms = timeOf("time", query.time, clock.now());
          const request = {
            query: query.query,
            start_ms: end_ms,
            end_ms,
            ...limitsOf(query.timeout),
            ...optionsOf(query),
          };
          return await answering(() => engine().query(orgOf(admitted).id, request, signal));
        },
      }),
    ),
    ...both(
      route(`GET ${BASE}/api/v1/query_range`, {
        ...COMMON,
        summary: "Evaluate a query over a range of time",
        query: RangeQuery,
        response: JSON_BYTES,
        errors: QUERY_ERRORS,
        async handle({ query, signal, ...admitted }) {
          const start_ms = timeOf("start", query.start, 0);
          const end_ms = timeOf("end", query.end, 0);
          const step_ms =
            stepOf("step", query.step) ?? fail("invalid_request", 'invalid parameter "step": it is empty');
          const request = {
            query: query.query,
            start_ms,
            end_ms,
            step_ms,
            ...limitsOf(query.timeout),
            ...optionsOf(query),
          };
          return await answering(() => engine().query(orgOf(admitted).id, request, signal));
        },
      }),
    ),
    route(`GET ${BASE}/federate`, {
      ...COMMON,
      summary: "The newest samples of the series that match, as Prometheus text",
      query: Type.Object({ "match[]": list }),
      response: { status: 200, type: "text/plain" },
      errors: QUERY_ERRORS,
      async handle({ query, signal, ...admitted }) {
        const selector = await answering(() => selectorOf(query["match[]"]));
        if (!selector) fail("invalid_request", NO_MATCH);
        const request = { selector, at_ms: clock.now(), lookback_ms: 300_000 };
        return await answering(() => engine().federate(orgOf(admitted).id, request, signal));
      },
    }),
    route(`POST ${BASE}/api/v1/read`, {
      ...COMMON,
      summary: "Remote read: not supported",
      response: JSON_BYTES,
      handle: async () => fail("invalid_request", "remote read is not supported; use /api/v1/query_range"),
    }),
  ];
}

function labelRoutes({ engine, clock }: Parts): Row[] {
  const scopeOf = async (query: { "match[]"?: string[]; start?: string; end?: string }): Promise<Scope> => {
    const end_ms = timeOf("end", query.end, clock.now());
    const selector = await selectorOf(query["match[]"]);
    return {
      start_ms: timeOf("start", query.start, end_ms - DAY_MS),
      end_ms,
      ...(selector ? { selector } : {}),
    };
  };
  /** Returns the list in the request's scope, up to its limit. */
  const listed = async (
    query: Parameters<typeof scopeOf>[0] & { limit?: number },
    read: (scope: Scope) => Promise<Uint8Array | readonly unknown[]>,
  ): Promise<Uint8Array | string> => {
    const scope = await scopeOf(query);
    const { data, warnings } = await firstOf(query.limit ?? 0, (most) => read({ ...scope, limit: most }));
    return success(data, warnings);
  };
  return [
    ...both(
      route(`GET ${BASE}/api/v1/series`, {
        ...COMMON,
        summary: "Series that match",
        query: ScopeQuery,
        response: JSON_BYTES,
        errors: QUERY_ERRORS,
        handle: async ({ query, signal, ...admitted }) =>
          await answering(async () => {
            if (!query["match[]"]) fail("invalid_request", NO_MATCH);
            return await listed(query, (scope) => engine().series(orgOf(admitted).id, scope, signal));
          }),
      }),
    ),
    ...both(
      route(`GET ${BASE}/api/v1/labels`, {
        ...COMMON,
        summary: "Label names",
        query: ScopeQuery,
        response: JSON_BYTES,
        errors: QUERY_ERRORS,
        handle: async ({ query, signal, ...admitted }) =>
          await answering(() => listed(query, (scope) => engine().labelNames(orgOf(admitted).id, scope, signal))),
      }),
    ),
    route(`GET ${BASE}/api/v1/label/:label_name/values`, {
      ...COMMON,
      summary: "Values of a label",
      query: ScopeQuery,
      response: JSON_BYTES,
      errors: QUERY_ERRORS,
      handle: async ({ params, query, signal, ...admitted }) =>
        await answering(() =>
          listed(query, (scope) =>
            engine().labelValues(orgOf(admitted).id, labelNameOf(params.label_name), scope, signal),
          ),
        ),
    }),
    route(`GET ${BASE}/api/v1/status/tsdb`, {
      ...COMMON,
      summary: "Cardinality: series by metric, by label, by value",
      query: StatusQuery,
      response: JSON_BYTES,
      errors: QUERY_ERRORS,
      handle: async ({ query, ...admitted }) =>
        await answering(async () => {
          const selector = await selectorOf(query["match[]"]);
          const request = {
            ...(query.topN ? { top: query.topN } : {}),
            ...(query.focusLabel ? { focus_label: query.focusLabel } : {}),
            ...(selector ? { selector } : {}),
          };
          return success(await engine().status(orgOf(admitted).id, request));
        }),
    }),
  ];
}

/** Other routes that Grafana's data source uses. Rules and alerts are in the alerts module. */
function grafanaRoutes({ engine, clock }: Parts): Row[] {
  const fixed = (path: string, summary: string, data: unknown): Row =>
    route(`GET ${BASE}${path}`, { ...COMMON, summary, response: JSON_BYTES, handle: async () => success(data) });
  return [
    // The version is the one of the query API we are compatible with; the revision is ours.
    fixed("/api/v1/status/buildinfo", "Version information, from which Grafana detects features", {
      version: "2.45.0",
      revision: VERSION,
      branch: "",
      buildUser: "",
      buildDate: "",
      goVersion: "",
    }),
    ...both(
      route(`GET ${BASE}/api/v1/query_exemplars`, {
        ...COMMON,
        summary: "Exemplars: there are none",
        query: Type.Object({ query: Type.String(), start: text, end: text }),
        response: JSON_BYTES,
        errors: QUERY_ERRORS,
        handle: async ({ query: { query } }) =>
          await answering(async () => {
            const { parse } = await import("./promql/parse.ts");
            parse(query);
            return success([]);
          }),
      }),
    ),
    route(`GET ${BASE}/api/v1/metadata`, {
      ...COMMON,
      summary: "Metric metadata: built-in ones of the last day, and what senders reported",
      query: Type.Object({ metric: text, limit }),
      response: JSON_BYTES,
      async handle({ query, ...admitted }) {
        const { id } = orgOf(admitted);
        const end_ms = clock.now();
        const names = await engine().labelValues(id, "__name__", { start_ms: end_ms - DAY_MS, end_ms });
        const known = [...builtinMetadata(new Set(names)), ...(await engine().metadata(id))];
        const wanted = query.metric ? known.filter(([name]) => name === query.metric) : known;
        const shown = query.limit ? wanted.slice(0, query.limit) : wanted;
        return success(Object.fromEntries(shown.map(([name, facts]) => [name, [facts]])));
      },
    }),
    ...both(
      route(`GET ${BASE}/api/v1/format_query`, {
        ...COMMON,
        summary: "A query, written as we would",
        query: Type.Object({ query: Type.String(), dialect }),
        response: JSON_BYTES,
        errors: QUERY_ERRORS,
        handle: async ({ query }) =>
          await answering(async () => {
            const [{ parse }, { print }] = await Promise.all([
              import("./promql/parse.ts"),
              import("./promql/printer.ts"),
            ]);
            return success(print(parse(query.query, query.dialect), query.dialect));
          }),
      }),
    ),
    ...both(
      route(`GET ${BASE}/api/v1/parse_query`, {
        ...COMMON,
        summary: "A query of the strict dialect as a tree",
        query: Type.Object({ query: Type.String() }),
        response: JSON_BYTES,
        errors: QUERY_ERRORS,
        handle: async ({ query: { query } }) =>
          await answering(async () => {
            const [{ parseAsWritten }, { treeJson }] = await Promise.all([
              import("./promql/parse.ts"),
              import("./promql/tree-json.ts"),
            ]);
            return success(treeJson(query, parseAsWritten(query)));
          }),
      }),
    ),
  ];
}

function success(data: unknown, warnings: readonly string[] = []): Uint8Array | string {
  const end = warnings.length === 0 ? "}" : `,"warnings":${JSON.stringify(warnings)}}`;
  if (!(data instanceof Uint8Array)) return `{"status":"success","data":${JSON.stringify(data)}${end}`;
  return Buffer.concat([Buffer.from('{"status":"success","data":'), data, Buffer.from(end)]);
}

type QueryOptions = Pick<QueryRequest, "dialect" | "nocache" | "limit" | "stats">;

interface OptionsQuery extends Omit<QueryOptions, "stats"> {
  stats?: string;
}

const optionsOf = ({ dialect: name, nocache: fresh, limit: most, stats: told }: OptionsQuery): QueryOptions => ({
  ...(name ? { dialect: name } : {}),
  ...(fresh ? { nocache: true } : {}),
  ...(most ? { limit: most } : {}),
  ...(told ? { stats: true } : {}),
});

function limitsOf(timeout: string | undefined): { limits?: { time_ms: number } } {
  const time_ms = stepOf("timeout", timeout);
  // A caller may lower the limit, not raise it.
  return time_ms === undefined ? {} : { limits: { time_ms: Math.min(time_ms, QUERY_LIMITS.time_ms) } };
}
