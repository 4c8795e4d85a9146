/** Egress policies put together: part of wiring/machines.ts, on a page of its own. */
import { EgressService, egressRoutes } from "#apps/egress.ts";
import type { AppStore } from "#apps/store.ts";
import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Settings } from "#core/settings.ts";
import type { HostService } from "#hosts/service.ts";
import type { Row } from "#http/route.ts";
import type { MachineUpdate } from "#machines/lifecycle/writer.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import type { MachineStore } from "#machines/store.ts";
import { EgressEnforcer } from "#network/egress-enforcer.ts";

interface EgressNeeds {
  hosts: HostService;
  store: MachineStore;
  appStore: AppStore;
  driver: RuntimeDriver;
  bus: Bus<MachineUpdate>;
  notifier: Notifier | undefined;
  clock: Clock;
  log: Log;
}

export function openEgress(settings: Settings, needs: EgressNeeds): { keeper: EgressEnforcer; rows: Row[] } {
  const { hosts, store, appStore: apps, driver, bus, notifier, clock, log } = needs;
  const opened = settings.network.egress_allow;
  const keeper = new EgressEnforcer({ host_ids: hosts.own, store, apps, driver, opened, bus, notifier, clock, log });
  const service = new EgressService({ store: apps, opened, onChange: (app_id) => keeper.changed(app_id) });
  return { keeper, rows: egressRoutes(service) };
}
