import { isoTime } from "#core/clock.ts";
import { orgOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { SCRAPE_LIMITS } from "./scrape/limits.ts";
import type { TargetState } from "./scrape/scraper.ts";

const seconds = (ms: number): string => `${ms / 1000}s`;

/** Scrape targets and their health, in Prometheus' format. */
export function targetRoutes(targets: (org_id: string) => readonly TargetState[]): Row[] {
  return [
    route("GET /prometheus/:org_slug/api/v1/targets", {
      part: "metrics",
      access: "read org",
      scheme: "metrics",
      style: "prometheus",
      summary: "List scrape targets and their health",
      query: Type.Object({
        state: Type.Optional(Type.Union([Type.Literal("active"), Type.Literal("dropped"), Type.Literal("any")])),
        scrapePool: Type.Optional(Type.String()),
      }),
      response: { status: 200, type: "application/json" },
      async handle({ query: { state, scrapePool }, ...admitted }) {
        const own = state === "dropped" ? [] : targets(orgOf(admitted).id);
        const wanted = own.filter(({ machine: { app } }) => scrapePool === undefined || app === scrapePool);
        const data = { activeTargets: wanted.map(shown), droppedTargets: [], droppedTargetCounts: {} };
        return JSON.stringify({ status: "success", data });
      },
    }),
  ];
}

function shown({ machine, url, health, last_error, last_scrape_ms, last_duration_ms, samples }: TargetState) {
  const { app, region, host, instance } = machine;
  return {
    discoveredLabels: { __address__: machine.private_ip, machine_id: machine.id },
    labels: { app, region, host, instance },
    scrapePool: app,
    scrapeUrl: url,
    globalUrl: url,
    lastError: last_error,
    lastScrape: last_scrape_ms === undefined ? null : isoTime(last_scrape_ms),
    lastScrapeDuration: last_duration_ms / 1000,
    lastSamples: samples,
    health,
    scrapeInterval: seconds(SCRAPE_LIMITS.interval_ms),
    scrapeTimeout: seconds(SCRAPE_LIMITS.timeout_ms),
  };
}
