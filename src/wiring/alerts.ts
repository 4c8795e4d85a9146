/** Alerts put together, part of platform.ts on a page of its own. */
import { Notifier } from "#alerts/notify/notifier.ts";
import { notificationRoutes } from "#alerts/notify/routes.ts";
import { Sender } from "#alerts/notify/sender.ts";
import { NotificationService } from "#alerts/notify/service.ts";
import { alertRoutes } from "#alerts/routes.ts";
import { RuleRunner } from "#alerts/rule-runner.ts";
import { AlertService } from "#alerts/service.ts";
import type { AuthStore } from "#auth/store.ts";
import type { TokenService } from "#auth/tokens.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import type { Row } from "#http/route.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlAlertStore } from "#stores/sql/alerts.ts";
import { sqlNotificationStore } from "#stores/sql/notifications.ts";
import type { LazyEngine } from "./metrics.ts";

interface AlertNeeds {
  authStore: Pick<AuthStore, "orgs">;
  tokens: Pick<TokenService, "fallen" | "isFullAccess">;
  sealer: Sealer;
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
  const { authStore, clock, log, dir, facts, metrics, tokens, sealer } = needs;
  const store = sqlAlertStore(database);
  const external_url = (slug: string): string => `${facts.base_url}/ui/${slug}`;
  const runner = new RuleRunner({
    store,
    orgs: () => authStore.orgs(),
    engine: metrics,
    hasMetrics: () => metrics.hasMetrics(),
    dialects: settings.metrics_url === undefined,
    is_shared: settings.database_url !== undefined,
    runner: dir.node_id,
    external_url,
    clock,
    log,
    changed: () => notifier.changed(),
  });
  const sender = new Sender({ clock, allow_private: settings.webhook_allow_private });
  const kept = { store: sqlNotificationStore(database), sender, sealer, clock };
  const notifier = new Notifier({ ...kept, tokens, runner, external_url, log });
  const isFullAccess = (token_id: string): Promise<boolean> => tokens.isFullAccess(token_id);
  const notifications = new NotificationService({ ...kept, notifier, isFullAccess });
  const alerts = new AlertService({ store, runner, clock });
  return {
    rows: [...alertRoutes(alerts, notifications), ...notificationRoutes(notifications, external_url)],
    start() {
      // A host has no API, and sends no requests.
      if (settings.role === "host") return;
      runner.start();
      notifier.start();
    },
    async close() {
      await notifier.close();
      await runner.close();
    },
  };
}
