/** The edge proxy put together: part of platform.ts, on a page of its own. */
import type { AppStore } from "#apps/store.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import type { DriverChoice } from "#drivers/choice.ts";
import type { HostService } from "#hosts/service.ts";
import type { MachineModule } from "#machines/module.ts";
import type { ImageFiles } from "#machines/runtime/image-source.ts";
import type { EgressEnforcer } from "#network/egress-enforcer.ts";
import type { NetworkListener } from "#network/network-listeners.ts";
import type { Reach } from "#proxy/exposure.ts";
import type { LastKnownTables } from "#proxy/last-known.ts";
import { ProxyModule } from "#proxy/module.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlAddressStore } from "#stores/sql/addresses.ts";
import { sqlMachineStore } from "#stores/sql/machines.ts";
import { sqlProxyStore } from "#stores/sql/proxy.ts";
import { sqlReleaseStore } from "#stores/sql/releases.ts";

interface ProxyNeeds {
  clock: Clock;
  log: Log;
  sealer: Sealer;
  appStore: AppStore;
  machines_module: MachineModule;
  hosts: HostService;
  choice: DriverChoice;
  images: ImageFiles;
  network_listeners: readonly NetworkListener[];
  dir: DataDir;
  notifier: Notifier | undefined;
  egress: EgressEnforcer;
  /** Stores the served tables, for a start without the database. */
  last_known: LastKnownTables | undefined;
  /** Where a machine's port is, if not at its private address. */
  reach?: Reach;
}

/** Opens the edge proxy and DNS. */
export function openProxy(database: Database, settings: Settings, needs: ProxyNeeds): ProxyModule {
  const { clock, log, sealer, appStore, machines_module, hosts, choice, images, reach, dir, notifier } = needs;
  return new ProxyModule({
    clock,
    log,
    sealer,
    apps: appStore,
    releases: sqlReleaseStore(database),
    names: choice.name === "runc",
    listeners: needs.network_listeners,
    upstreams: settings.network.dns_servers,
    egress: needs.egress,
    images,
    last_known: needs.last_known,
    settings: { ...settings.proxy, buckets: buckets(settings), own_hosts: ownHosts(settings) },
    machines: machines_module,
    store: sqlMachineStore(database),
    host_ids: hosts.own,
    hostStatus: (id) => hosts.status(id),
    region: hosts.default_region,
    addressStore: sqlAddressStore(database),
    proxyStore: sqlProxyStore(database),
    ...(reach ? { reach } : {}),
    ...(notifier && settings.role !== "host" ? { among: { node_id: dir.node_id, notifier } } : {}),
  });
}

/** The platform's own host names. */
function ownHosts({ listen, base_url, sprites_base_url, oidc_issuer_url }: Settings): string[] {
  const urls = [base_url, sprites_base_url, oidc_issuer_url].filter((url) => url !== "");
  return [...new Set([listen.host.toLowerCase(), ...urls.map((url) => new URL(url).hostname)])];
}

/** Apps' files may come from the same S3 server as the platform's objects, but not from its bucket. */
export function buckets({ proxy, objects: { url } }: Settings): Settings["proxy"]["buckets"] {
  const own = url && url.origin === proxy.buckets?.origin ? url.pathname.split("/")[1] : undefined;
  return proxy.buckets && { ...proxy.buckets, closed: own };
}
