/** Apps, hosts, machines and volumes, put together: part of platform.ts, on a page of its own. */
import { join } from "node:path";
import type { SecretService } from "#apps/secrets.ts";
import { AppService } from "#apps/service.ts";
import type { AppStore } from "#apps/store.ts";
import type { AuthStore } from "#auth/store.ts";
import type { TokenService } from "#auth/tokens.ts";
import type { BuildService } from "#builds/service.ts";
import type { Clock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { scoped } from "#core/objects.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import type { DriverChoice } from "#drivers/choice.ts";
import { openDisk } from "#drivers/disk/open.ts";
import { openImages } from "#drivers/images/images.ts";
import { Ipv4Claims } from "#drivers/net/ipv4-claims.ts";
import { openFence, openRuntime } from "#drivers/open.ts";
import { Channel } from "#hosts/channel.ts";
import type { Fence } from "#hosts/fence.ts";
import { makeJoinToken } from "#hosts/join.ts";
import { hostRoutes } from "#hosts/routes.ts";
import type { HostService } from "#hosts/service.ts";
import type { Guard } from "#http/access.ts";
import type { ReadinessCheck } from "#http/readiness.ts";
import type { Row } from "#http/route.ts";
import { imageResolveRoutes, imageRoutes } from "#machines/api/image-routes.ts";
import { machineRoutes } from "#machines/api/routes.ts";
import type { RouteParts } from "#machines/api/routing.ts";
import { volumeGrew } from "#machines/lifecycle/volume-growth.ts";
import { MachineModule } from "#machines/module.ts";
import { PrivateNetworks } from "#machines/private-networks.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import type { ImageCatalog, ImageSource } from "#machines/runtime/image-source.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import { volumeMigratingDriver } from "#machines/runtime/volume-migrating-driver.ts";
import type { NetworkListener } from "#network/network-listeners.ts";
import type { Reach } from "#proxy/exposure.ts";
import type { LastKnownTables } from "#proxy/last-known.ts";
import type { ProxyModule } from "#proxy/module.ts";
import { type ProxyReadiness, readinessDriver } from "#proxy/readiness-driver.ts";
import type { Registry } from "#registry/service.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { openObjects } from "#stores/objects/open.ts";
import { sqlMachineStore } from "#stores/sql/machines.ts";
import { sqlPeerStore } from "#stores/sql/peers.ts";
import { sqlNetworkStore } from "#stores/sql/private-networks.ts";
import { sqlReleaseStore } from "#stores/sql/releases.ts";
import { sqlVolumeStore } from "#stores/sql/volumes.ts";
import { VolumeModule } from "#volumes/module.ts";
import { volumeRoutes } from "#volumes/routes.ts";
import type { Grown } from "#volumes/scheduler.ts";
import { type BuilderNeeds, buildDuties, openBuilder, openBuilds } from "./builds.ts";
import { databaseRoutes } from "./databases.ts";
import { openDeliveries } from "./deliveries.ts";
import { openEgress } from "./egress.ts";
import type { Emulated } from "./emulated.ts";
import { type LazyEngine, MeasuredMachines, openMetrics, openSources } from "./metrics.ts";
import { openOverlay, ownBlock } from "./overlay.ts";
import { platformSamples } from "./platform-samples.ts";
import { openProxy } from "./proxy.ts";
import { openRegistry } from "./registry.ts";
import { Duty, openBeats, openHosts } from "./roles.ts";
import { sharedImages } from "./shared-images.ts";

interface MachineNeeds {
  /** Also admits machines. */
  push_guard: Pick<Guard, "admit">;
  clock: Clock;
  log: Log;
  sealer: Sealer;
  secrets: SecretService;
  tokens: Pick<TokenService, "fallen" | "isFullAccess">;
  authStore: AuthStore;
  appStore: AppStore;
  choice: DriverChoice;
  dir: DataDir;
  /** The base URL is empty before it is known. */
  facts: { base_url: string };
  local_api: LocalApi;
  /** Services on machines' private networks beside DNS. */
  network_listeners: readonly NetworkListener[];
  images?: ImageSource;
  reach?: Reach;
  emulated?: Emulated;
  around?: (driver: RuntimeDriver) => RuntimeDriver;
  fence?: Fence;
  /** Stores the proxy's tables, for a start without the database. */
  last_known: LastKnownTables | undefined;
  /** For join tokens. */
  master_key: Uint8Array;
}

interface MachinesPart {
  apps: AppService;
  host_ids: readonly string[];
  hosts: HostService;
  proxy: ProxyModule;
  registry: Registry;
  images: ImageCatalog;
  builds: BuildService;
  rows: Row[];
  metrics: LazyEngine;
  readiness: readonly ReadinessCheck[];
  /** What other modules need of machines. */
  machine_parts: RouteParts;
  bus: MachineModule["bus"];
  /** Several processes share the database. */
  is_shared: boolean;
  /** Nothing runs before this. */
  start(): Promise<void>;
  close(): Promise<void>;
}

function openApps({ appStore, clock }: MachineNeeds, module: MachineModule, { volumes }: VolumeModule): AppService {
  return new AppService({
    store: appStore,
    clock,
    machines: module.machines,
    volumes,
    async clear(app_id) {
      await module.clear(app_id);
      await volumes.deleteAll(app_id);
    },
  });
}

/** Opens apps, hosts, machines and webhooks. */
export async function openMachines(database: Database, settings: Settings, needs: MachineNeeds): Promise<MachinesPart> {
  const opened = await openModule(database, settings, {
    ...needs,
    readiness: readinessOfProxy(() => proxy),
    withNames: (private_ip, work) => proxy.withNames(private_ip, work),
    builds: () => builds,
  });
  const { images, registry, hosts, hostStore, volumes, store, duty, notifier, machines_module } = opened;
  const apps = openApps(needs, machines_module, volumes);
  const { builds, ongoing, rows: build_rows } = openBuilds(database, { ...needs, ...opened, apps });
  const deliveries = openDeliveries(database, settings, { ...needs, ...opened, apps });
  const egress = openEgress(settings, { ...needs, ...opened, bus: machines_module.bus });
  const served = { machines_module, hosts, images, notifier, egress: egress.keeper };
  const proxy = openProxy(database, settings, { ...needs, ...served });
  const overlay =
    notifier && openOverlay(database, settings, { ...needs, ...opened, notifier, directory: proxy.directory });
  const running = new MeasuredMachines({ host_ids: hosts.own, store, bus: machines_module.bus });
  const sources = await openSources({ ...needs, machines: running, proxy, host_ids: hosts.own });
  const serves_api = settings.role !== "host";
  const measuring = openMetrics(settings, {
    ...needs,
    sampled: needs.emulated?.sampled ?? true,
    machines: running,
    ...sources,
    providers: [...sources.providers, platformSamples(database, { ...needs, machines: running, hosts, serves_api })],
    volumes: async () =>
      (await volumes.measurements()).map(({ app_name: app, host_id: host, ...facts }) => ({ app, host, ...facts })),
  });
  const services = { apps, hosts, proxy, images, builds, registry: registry.registry };
  const machine_parts = machines_module.routeParts(apps);
  return {
    ...services,
    machine_parts,
    bus: machines_module.bus,
    is_shared: notifier !== undefined,
    host_ids: hosts.own,
    metrics: measuring.engine,
    readiness: readinessOf({ machines_module, proxy, duty, serves_api, runs: hosts.own.length > 0 }),
    rows: [
      ...hostRoutes({
        hosts,
        onState: (id, state) => machines_module.hostState(id, state),
        drain: (id, name, ids) => machines_module.relocation.drain(id, { name, ids }),
        joinToken: (ids) => makeJoinToken(hostStore, { ...needs, ids }),
      }),
      ...imageRoutes(images),
      ...imageResolveRoutes(machine_parts, images),
      ...build_rows,
      ...egress.rows,
      ...machineRoutes({ ...machine_parts, ongoing }),
      ...deliveries.rows,
      ...volumeRoutes(volumes, apps),
      ...proxy.rows,
      ...measuring.rows,
      ...databaseRoutes({ ...needs, ...sources, apps: needs.appStore, machines: store, engine: measuring.engine }),
    ],
    async start() {
      if (hosts.own.length > 0) await volumes.start();
      await (duty ? duty.start(machines_module) : machines_module.start());
      await builds.start();
      await egress.keeper.start();
      await deliveries.start();
      await (serves_api ? proxy.start() : proxy.startNames());
      await overlay?.start();
      await measuring.start();
    },
    async close() {
      const serving = [builds, overlay, egress.keeper, proxy, deliveries, machines_module, duty];
      for (const part of [...serving, volumes, measuring, images, registry, notifier]) await part?.close();
    },
  };
}

interface ReadyParts {
  machines_module: MachineModule;
  proxy: ProxyModule;
  duty: Duty | undefined;
  /** Serves API requests. */
  serves_api: boolean;
  /** Runs machines. */
  runs: boolean;
}

/** Readiness checks of a process with these duties. */
function readinessOf({ machines_module, proxy, duty, serves_api, runs }: ReadyParts): ReadinessCheck[] {
  const executor: ReadinessCheck = { part: "executor", problem: async () => machines_module.executor.problem };
  const edge: ReadinessCheck = {
    part: "proxy",
    problem: async () => {
      await proxy.workers.settled();
      return undefined;
    },
  };
  const lease: ReadinessCheck[] = duty ? [{ part: "lease", problem: async () => duty.problem }] : [];
  return [...(runs ? [executor, ...lease] : []), ...(serves_api ? [edge] : [])];
}

/** The edge proxy depends on the machines module, so it is available slightly later. */
const readinessOfProxy = (proxy: () => ProxyModule): ProxyReadiness => ({
  opened: (...args) => proxy().control.opened(...args),
  quiet: (...args) => proxy().control.quiet(...args),
});

/** The IPv4 block of this host's machines, where other hosts have routes to them. */
async function openIpv4(database: Database, { dir, sealer }: MachineNeeds, has_peers: boolean) {
  const ipv4_claims = has_peers ? new Ipv4Claims(dir.path, sealer.derive("claims on a host")) : undefined;
  return { ipv4_claims, ipv4_block: ipv4_claims && (await ownBlock(ipv4_claims, sqlPeerStore(database), dir.node_id)) };
}

/** Opens the machines module and its dependencies. */
async function openModule(
  database: Database,
  settings: Settings,
  needs: MachineNeeds & {
    readiness: ProxyReadiness;
    withNames: BuilderNeeds["withNames"];
    /** Available slightly later. */
    builds: () => BuildService;
  },
) {
  const { clock, log, sealer, secrets, choice, dir, local_api } = needs;
  const { hosts, store: hostStore, notifier } = await openHosts(database, settings, { clock, log, dir });
  const channel = new Channel(sealer, clock);
  const releases = () => sqlReleaseStore(database).releaseImages(LIMITS.release_images_kept);
  const around = { clock, log, dir, channel, addresses: hostStore, releases };
  const registry = await openRegistry(database, settings, { ...needs, ...around, is_alone: notifier === undefined });
  const { pushed } = registry;
  const among = { ...around, pushed };
  const images = await (notifier
    ? sharedImages(database, settings, among)
    : openImages(dir.file("images"), settings, clock, log, { releases, pushed }));
  const grown = (what: Grown): Promise<void> => volumeGrew(machines_module.writer, what);
  const volumes = await openVolumes(database, settings, {
    clock,
    log,
    sealer,
    hosts,
    driver: choice.name,
    notifier,
    grown,
  });
  const routed = settings.host.network !== "off";
  const { ipv4_claims, ipv4_block } = await openIpv4(database, needs, notifier !== undefined && routed);
  const { egress_allow } = settings.network;
  const here = { data_dir: dir.path, node_id: dir.node_id, clock, log, routed, ipv4_block, egress_allow };
  // The lease depends on the machines module, so it is available slightly later.
  const leased = notifier && hosts.own.length > 0 ? { holds: () => duty?.holdsAll() ?? false } : undefined;
  const own = { ...here, sim: needs.emulated?.sim, enclosing: leased };
  const store = sqlMachineStore(database);
  const { suspend, machine_io: io_limits, kept_logs } = settings;
  const memory_key = sealer.derive("memory of suspended machines");
  const builder = openBuilder(settings, { images, choice, dir, clock, withNames: needs.withNames });
  const ports = builder?.ports(volumes, local_api) ?? { volumes, local_api };
  const inside = { images: needs.images ?? images, ...ports, suspend, io_limits, kept_logs, memory_key };
  const opened = await openRuntime(settings, choice, { ...own, ...inside });
  const for_machines = builder?.around(opened) ?? opened;
  const driver = readinessDriver(needs.around?.(for_machines) ?? for_machines, needs.readiness);
  const fence = needs.fence ?? (leased ? await openFence(choice, own) : undefined);
  const building = buildDuties(builder, needs.builds);
  const shared = {
    hosts,
    store: hostStore,
    machines: store,
    driver,
    fence,
    channel,
    more: {
      calls: { ...images.layer_store?.calls, ...registry.handlers.calls, ...building.handlers.calls },
      streams: { ...images.layer_store?.streams, ...registry.handlers.streams, ...building.handlers.streams },
    },
    builds: building.builds,
    onLost: building.onLost,
  };
  const beats = notifier && (await openBeats(settings, hostStore));
  const duty = notifier && beats && new Duty({ ...shared, beats, settings, notifier, clock, log, dir, sealer });
  const networks = new PrivateNetworks(sqlNetworkStore(database), sealer.derive("prefixes of private networks"));
  const machines_module = new MachineModule({
    store,
    hosts,
    networks,
    clock,
    log,
    volumes,
    // Moving a volume may take long, so the lease is checked after that.
    driver: volumeMigratingDriver(duty?.driver ?? driver, volumes),
    secrets: (app_id) => secrets.reveal(app_id),
    egress: (app_id) => needs.appStore.egress(app_id),
    logs_kept_ms: kept_logs.ms,
    ...(duty ? { shared: { notifier, holds: (id: string) => duty.holds(id) } } : {}),
  });
  const kept = { images, registry, hosts, hostStore, volumes, store, networks, channel };
  return { ...kept, duty, notifier, machines_module, ipv4_block, ipv4_claims, driver, builder };
}

interface VolumeNeeds {
  clock: Clock;
  log: Log;
  sealer: Sealer;
  hosts: HostService;
  driver: string;
  notifier: Notifier | undefined;
  grown(grown: Grown): Promise<void>;
}

/** Opens volumes on the driver's disk, with snapshots in the configured object store. */
async function openVolumes(
  database: Database,
  { data_dir, objects, volume_undelete_hours, volume_disk: disk, volume_pool: pool }: Settings,
  { clock, log, sealer, hosts, driver, notifier, grown }: VolumeNeeds,
): Promise<VolumeModule> {
  const store = sqlVolumeStore(database);
  const kept = await openObjects(objects, join(data_dir, "objects"), clock);
  const identity = await store.identity(randomIds(clock).hex(16));
  return new VolumeModule({
    store,
    hosts,
    disk: openDisk({ disk, pool, dir: join(data_dir, "volumes") }, driver),
    objects: scoped(kept, `volumes/${identity}/`),
    sealer,
    clock,
    log,
    undelete_ms: volume_undelete_hours * 3_600_000,
    movable: objects.url !== undefined,
    ...(notifier ? { notifier } : {}),
    grown,
  });
}
