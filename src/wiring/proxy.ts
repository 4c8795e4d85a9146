/** The front door put together: part of platform.ts, on a page of its own. */
import type { AppStore } from "#apps/store.ts";
import type { Box } from "#core/box.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import type { Wire } from "#core/wire.ts";
import type { DriverChoice } from "#drivers/choice.ts";
import type { HostService } from "#hosts/service.ts";
import type { ImageFiles } from "#machines/image-source.ts";
import type { MachineRoom } from "#machines/room.ts";
import type { NetworkDoor } from "#network/dns/keeper.ts";
import type { EgressKeeper } from "#network/egress-keeper.ts";
import type { Reach } from "#proxy/exposure.ts";
import { ProxyRoom } from "#proxy/room.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlAddressStore } from "#stores/sql/addresses.ts";
import { sqlMachineStore } from "#stores/sql/machines.ts";
import { sqlProxyStore } from "#stores/sql/proxy.ts";

interface ProxyNeeds {
  clock: Clock;
  log: Log;
  box: Box;
  appStore: AppStore;
  room: MachineRoom;
  hosts: HostService;
  choice: DriverChoice;
  images: ImageFiles;
  network_doors: readonly NetworkDoor[];
  dir: DataDir;
  wire: Wire | undefined;
  egress: EgressKeeper;
  /** Where a machine's port is, when it is not at the machine's private address. */
  reach?: Reach;
}

/** Requests from outside to machines, and the names machines know each other by. */
export function openProxy(database: Database, settings: Settings, needs: ProxyNeeds): ProxyRoom {
  const { clock, log, box, appStore, room, hosts, choice, images, reach, dir, wire } = needs;
  return new ProxyRoom({
    clock,
    log,
    box,
    apps: appStore,
    names: choice.name === "runc",
    doors: needs.network_doors,
    upstreams: settings.network.dns_servers,
    egress: needs.egress,
    images,
    settings: { ...settings.proxy, buckets: buckets(settings), own_hosts: ownHosts(settings) },
    machines: room,
    store: sqlMachineStore(database),
    host_ids: hosts.own,
    region: hosts.default_region,
    addressStore: sqlAddressStore(database),
    proxyStore: sqlProxyStore(database),
    ...(reach ? { reach } : {}),
    ...(wire && settings.role !== "host" ? { among: { node_id: dir.node_id, wire } } : {}),
  });
}

/** Under which names the platform itself is reached. */
function ownHosts({ listen, base_url, sprites_base_url, oidc_issuer_url }: Settings): string[] {
  const urls = [base_url, sprites_base_url, oidc_issuer_url].filter((url) => url !== "");
  return [...new Set([listen.host.toLowerCase(), ...urls.map((url) => new URL(url).hostname)])];
}

/** Files of apps may come from the server that keeps the platform's own objects, but not from among those. */
function buckets({ proxy, objects: { url } }: Settings): Settings["proxy"]["buckets"] {
  const own = url && url.origin === proxy.buckets?.origin ? url.pathname.split("/")[1] : undefined;
  return proxy.buckets && { ...proxy.buckets, closed: own };
}
