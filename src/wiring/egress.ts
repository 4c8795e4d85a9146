/** Egress policies put together: part of wiring/machines.ts, on a page of its own. */
import { EgressService, egressRoutes } from "#apps/egress.ts";
import type { AppStore } from "#apps/store.ts";
import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import type { Wire } from "#core/wire.ts";
import type { HostService } from "#hosts/service.ts";
import type { Row } from "#http/route.ts";
import type { RuntimeDriver } from "#machines/driver.ts";
import type { News } from "#machines/ledger.ts";
import type { MachineStore } from "#machines/store.ts";
import { EgressKeeper } from "#network/egress-keeper.ts";

interface EgressNeeds {
  hosts: HostService;
  store: MachineStore;
  appStore: AppStore;
  driver: RuntimeDriver;
  bus: Bus<News>;
  wire: Wire | undefined;
  clock: Clock;
  log: Log;
}

export function openEgress(settings: Settings, needs: EgressNeeds): { keeper: EgressKeeper; rows: Row[] } {
  const { hosts, store, appStore: apps, driver, bus, wire, clock, log } = needs;
  const opened = settings.network.egress_allow;
  const keeper = new EgressKeeper({ host_ids: hosts.own, store, apps, driver, opened, bus, wire, clock, log });
  const service = new EgressService({ store: apps, opened, onChange: (app_id) => keeper.changed(app_id) });
  return { keeper, rows: egressRoutes(service) };
}
