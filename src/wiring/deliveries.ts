/**
 * Webhooks and log drains put together. Webhooks are sent by processes with an API; log lines by every process, those of
 * its own host's machines.
 */
import type { AppService } from "#apps/service.ts";
import type { TokenService } from "#auth/tokens.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import type { HostService } from "#hosts/service.ts";
import type { Row } from "#http/route.ts";
import { drainRoutes } from "#machines/api/drain-routes.ts";
import { webhookRoutes } from "#machines/api/webhook-routes.ts";
import { Webhooks } from "#machines/events/webhooks.ts";
import { LogDrains } from "#machines/logs/drains/drains.ts";
import { DrainSender } from "#machines/logs/drains/sender.ts";
import { DrainService } from "#machines/logs/drains/service.ts";
import type { MachineModule } from "#machines/module.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import type { MachineStore } from "#machines/store.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlDrainStore } from "#stores/sql/log-drains.ts";
import { sqlWebhookStore } from "#stores/sql/webhooks.ts";

interface DeliveryNeeds {
  apps: AppService;
  machines_module: MachineModule;
  store: MachineStore;
  driver: RuntimeDriver;
  hosts: HostService;
  tokens: Pick<TokenService, "fallen" | "isFullAccess">;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  dir: DataDir;
}

interface Deliveries {
  rows: Row[];
  start(): Promise<void>;
  close(): Promise<void>;
}

export function openDeliveries(database: Database, settings: Settings, needs: DeliveryNeeds): Deliveries {
  const { apps, sealer, clock, log, tokens, dir } = needs;
  const { webhook_allow_private: allow_private, role } = settings;
  const { events, bus } = needs.machines_module;
  const around = { sealer, clock, log, tokens };
  const store = sqlWebhookStore(database);
  const webhooks = new Webhooks({ ...around, store, events, bus, allow_private, runner: dir.node_id });
  const drains = openLogDrains(database, allow_private, needs);
  return {
    rows: [...webhookRoutes({ apps }, webhooks), ...drains.rows],
    async start() {
      if (role !== "host") await webhooks.start();
      drains.start();
    },
    async close() {
      webhooks.close();
      await drains.close();
    },
  };
}

function openLogDrains(database: Database, allow_private: readonly string[], needs: DeliveryNeeds) {
  const { apps, store: machines, driver, hosts, tokens, sealer, clock, log } = needs;
  const sender = new DrainSender(allow_private);
  const [host_id] = hosts.own;
  const kept = { store: sqlDrainStore(database), sender, sealer, clock };
  const queue = driver.log_queue;
  const drains = new LogDrains({ ...kept, machines, queue, tokens, host_id: host_id ?? "", log });
  const service = new DrainService({ ...kept, isFullAccess: (id) => tokens.isFullAccess(id), drains });
  return {
    rows: drainRoutes({ apps, clock }, service),
    start(): void {
      // Without machines there are no logs.
      if (host_id !== undefined) drains.start();
    },
    close: () => drains.close(),
  };
}
