/** Alerts put together, part of platform.ts on a page of its own. */
import { alertRoutes } from "#alerts/routes.ts";
import { RuleRunner } from "#alerts/rule-runner.ts";
import { AlertService } from "#alerts/service.ts";
import type { AuthStore } from "#auth/store.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import type { Row } from "#http/route.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlAlertStore } from "#stores/sql/alerts.ts";
import type { LazyEngine } from "./metrics.ts";

interface AlertNeeds {
  authStore: Pick<AuthStore, "orgs">;
  clock: Clock;
  log: Log;
  dir: DataDir;
  facts: { base_url: string };
  metrics: LazyEngine;
}

interface AlertPart {
  rows: Row[];
  start(): void;
  close(): Promise<void>;
}

export function openAlerts(database: Database, settings: Settings, needs: AlertNeeds): AlertPart {
  const { authStore, clock, log, dir, facts, metrics } = needs;
  const store = sqlAlertStore(database);
  const runner = new RuleRunner({
    store,
    orgs: () => authStore.orgs(),
    engine: metrics,
    hasMetrics: () => metrics.hasMetrics(),
    dialects: settings.metrics_url === undefined,
    is_shared: settings.database_url !== undefined,
    runner: dir.node_id,
    external_url: (slug) => `${facts.base_url}/ui/${slug}`,
    clock,
    log,
    changed: () => {},
  });
  const alerts = new AlertService({ store, runner, clock });
  return {
    rows: alertRoutes(alerts),
    // A host has no API, and asks nothing of others.
    start: () => void (settings.role !== "host" && runner.start()),
    close: () => runner.close(),
  };
}
