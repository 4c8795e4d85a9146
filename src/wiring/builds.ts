/** Builds, put together: part of wiring/machines.ts, on a page of its own. */
import { join } from "node:path";
import type { AppService } from "#apps/service.ts";
import type { AppStore } from "#apps/store.ts";
import { type Builder, noBuilder } from "#builds/builder.ts";
import { ContextFiles } from "#builds/context-files.ts";
import { BUILD_LIMITS } from "#builds/limits.ts";
import { Ongoing } from "#builds/ongoing.ts";
import { buildRoutes } from "#builds/routes.ts";
import { BuildService } from "#builds/service.ts";
import { BUILDS, type BuildSite, buildHost } from "#builds/site.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Settings } from "#core/settings.ts";
import { ContainerBuilder } from "#drivers/builds/container-builder.ts";
import { buildHandlers, remoteBuilds } from "#drivers/builds/remote-builds.ts";
import type { DriverChoice } from "#drivers/choice.ts";
import type { Channel } from "#hosts/channel.ts";
import type { HostService } from "#hosts/service.ts";
import type { Host } from "#hosts/types.ts";
import type { Row } from "#http/route.ts";
import { privateAddress } from "#machines/names.ts";
import type { PrivateNetworks } from "#machines/private-networks.ts";
import type { ImageCatalog, ImageSource } from "#machines/runtime/image-source.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlBuildStore } from "#stores/sql/builds.ts";
import { sqlReleaseStore } from "#stores/sql/releases.ts";

export interface BuilderNeeds {
  images: ImageSource & ImageCatalog;
  choice: DriverChoice;
  dir: DataDir;
  clock: Clock;
  withNames<T>(private_ip: string, work: () => Promise<T>): Promise<T>;
}

/** Only where machines are containers. */
export function openBuilder({ role }: Settings, { images, choice, dir, clock, withNames }: BuilderNeeds) {
  if (choice.name !== "runc" || role === "control") return undefined;
  return new ContainerBuilder({ dir: dir.file("builds"), images, limits: BUILD_LIMITS, clock, withNames });
}

const NO_CONTAINERS = "its driver runs no containers in this process";

/** What this process does about builds as one among several. The service is available slightly later. */
export const buildDuties = (builder: Builder | undefined, service: () => BuildService) => ({
  builds: builder ? (builder.problem() ?? BUILDS) : NO_CONTAINERS,
  onLost: (host: Host): Promise<void> => service().hostLost(host),
  handlers: buildHandlers(service),
});

interface BuildNeeds {
  builder: Builder | undefined;
  hosts: HostService;
  notifier: Notifier | undefined;
  channel: Channel;
  networks: Pick<PrivateNetworks, "prefix">;
  apps: AppService;
  appStore: AppStore;
  dir: DataDir;
  clock: Clock;
  log: Log;
}

interface BuildsPart {
  builds: BuildService;
  ongoing: Ongoing["follow"];
  rows: Row[];
}

export function openBuilds(database: Database, needs: BuildNeeds): BuildsPart {
  const { networks, apps, appStore, hosts, notifier, channel, dir, clock, log } = needs;
  const root = dir.file("builds");
  const limits = BUILD_LIMITS;
  const builder =
    needs.builder ?? noBuilder(notifier ? "no host of it can (`hangar hosts show` says why)" : NO_CONTAINERS);
  const store = sqlBuildStore(database);
  const builds = new BuildService({
    store,
    builder,
    files: new ContextFiles({ dir: join(root, "files"), clock, limits }),
    dir: join(root, "run"),
    node_id: dir.node_id,
    notifier,
    async address({ org_id, network }, id) {
      return privateAddress({ id, network: await networks.prefix(org_id, network), host_id: hosts.own[0] ?? "0001" });
    },
    egress: (app_id) => appStore.egress(app_id),
    clock,
    log,
    limits,
  });
  const siteOf = async (org_id: string): Promise<BuildSite> => {
    const host = notifier && buildHost(org_id, await hosts.hosts());
    return host && !hosts.own.includes(host.id) ? remoteBuilds(channel, host.address) : builds;
  };
  const ongoing = new Ongoing({ builds: store, releases: sqlReleaseStore(database), clock, log });
  const follow: Ongoing["follow"] = (org_id, signal) => ongoing.follow(org_id, signal);
  return { builds, ongoing: follow, rows: buildRoutes({ builds, siteOf, apps, store, clock }) };
}
