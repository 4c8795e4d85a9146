import { type Clock, isoTime } from "#core/clock.ts";
import { orgOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { builtinMetadata } from "./builtin/catalogue.ts";
import type { MetricsEngine } from "./engine/engine.ts";
import type { TargetState } from "./scrape/scraper.ts";
import { TSDB_LIMITS } from "./tsdb/limits.ts";

interface Parts {
  engine(): MetricsEngine;
  clock: Clock;
  targets(org_id: string): readonly TargetState[];
}

const COMMON = {
  part: "metrics",
  access: "read org",
  scheme: "metrics",
  style: "prometheus",
  response: { status: 200, type: "application/json" },
} as const;
const BASE = "/prometheus/:org_slug/api/v1";
const success = (data: unknown): string => JSON.stringify({ status: "success", data });

/** Status routes for Prometheus' UI and clients. There is no configuration file and no flag here. */
export function statusRoutes({ engine, clock, targets }: Parts): Row[] {
  const started = clock.now();
  const fixed = (path: string, summary: string, data: () => unknown): Row =>
    route(`GET ${BASE}${path}`, { ...COMMON, summary, handle: async () => success(data()) });
  return [
    fixed("/status/config", "Prometheus' configuration file: there is none", () => ({ yaml: "" })),
    fixed("/status/flags", "Prometheus' flags: there are none", () => ({})),
    fixed("/status/runtimeinfo", "The server's start time and the retention of samples", () => ({
      startTime: isoTime(started),
      CWD: "",
      reloadConfigSuccess: true,
      lastConfigTime: isoTime(started),
      corruptionCount: 0,
      goroutineCount: 0,
      GOMAXPROCS: 0,
      GOGC: "",
      GODEBUG: "",
      storageRetention: `${TSDB_LIMITS.retention_ms / 86_400_000}d`,
    })),
    fixed("/status/walreplay", "Progress of the start: queries wait until it is complete", () => ({
      min: 0,
      max: 0,
      current: 0,
    })),
    fixed("/notifications", "Notifications of the server for its UI: there are none", () => []),
    route(`GET ${BASE}/scrape_pools`, {
      ...COMMON,
      summary: "Scrape pools: one for each app with scrape targets",
      handle: async (call) => {
        const pools = targets(orgOf(call).id).map(({ machine: { app } }) => app);
        return success({ scrapePools: [...new Set(pools)].sort() });
      },
    }),
    fixed("/alertmanagers", "Alertmanagers of the server itself: an organization's are in its receivers", () => ({
      activeAlertmanagers: [],
      droppedAlertmanagers: [],
    })),
    route(`GET ${BASE}/targets/metadata`, {
      ...COMMON,
      summary: "Metadata of the metrics of scrape targets",
      query: Type.Object({
        match_target: Type.Optional(Type.String()),
        metric: Type.Optional(Type.String()),
        limit: Type.Optional(Type.Integer({ minimum: 0 })),
      }),
      async handle({ query, ...call }) {
        const { id } = orgOf(call);
        const known = new Map([...builtinMetadata(new Set()), ...(await engine().metadata(id))]);
        const wanted = [...known].filter(([name]) => query.metric === undefined || name === query.metric);
        const list = targets(id).flatMap(({ machine: { app, region, host, instance } }) =>
          wanted.map(([metric, facts]) => ({ target: { app, region, host, instance }, metric, ...facts })),
        );
        return success(query.limit ? list.slice(0, query.limit) : list);
      },
    }),
  ];
}
