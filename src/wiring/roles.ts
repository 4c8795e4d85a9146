/**
 * One process among several on one database, put together: which hosts it is, what wakes it, how it keeps its leases
 * and watches those of others. With SQLite there is none of this: one process is everything.
 */
import { existsSync, rmSync, statfsSync } from "node:fs";
import { arch, availableParallelism, totalmem } from "node:os";
import type { Clock } from "#core/clock.ts";
import { HOST_FILES, type HostPlace } from "#core/host-status.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Sealer } from "#core/sealer.ts";
import { SettingsError } from "#core/setting-values.ts";
import type { Settings } from "#core/settings.ts";
import { VERSION } from "#core/version.ts";
import { machineCalls, machineStreams, remoteDriver } from "#drivers/remote/driver.ts";
import {
  type CallHandlers,
  type Channel,
  type ChannelListener,
  listenForPeers,
  type StreamHandlers,
} from "#hosts/channel.ts";
import type { Fence } from "#hosts/fence.ts";
import { joinHost, keyFromToken } from "#hosts/join.ts";
import { HostLease } from "#hosts/lease.ts";
import { HOST_LIMITS } from "#hosts/limits.ts";
import { declaredHosts, HostService } from "#hosts/service.ts";
import type { HostStore } from "#hosts/store.ts";
import type { Host, HostFacts, Placing } from "#hosts/types.ts";
import { HostWatch } from "#hosts/watch.ts";
import { Exemptions } from "#machines/exemptions.ts";
import type { MachineModule } from "#machines/module.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import { fencedDriver } from "#machines/runtime/fenced-driver.ts";
import type { MachineStore } from "#machines/store.ts";
import { type DataDir, masterKey, writeFileDurably } from "#stores/data-dir.ts";
import { type Database, readOne } from "#stores/database.ts";
import { sqlHostStore } from "#stores/sql/hosts.ts";

/** CPU overcommit: allocatable CPUs per physical one. */
const SHARE = 8;
const MIB = 1024 * 1024;

/** The master key: configured, stored, obtained with a join token, or created at the very first start. */
export async function sealingKey(database: Database, settings: Settings, dir: DataDir, clock: Clock): Promise<Buffer> {
  const { master_key, role, host } = settings;
  if (master_key) return master_key;
  const file = dir.file("master.key");
  if (!existsSync(file) && host.join_token !== "") {
    const store = sqlHostStore(database);
    const key = await keyFromToken(host.join_token, { store, clock, node_id: dir.node_id });
    writeFileDurably(file, `${key.toString("base64")}\n`);
  }
  if (!existsSync(file) && role === "host") {
    throw new SettingsError("role host: a new host needs --join-token; `hangar hosts join-token` makes one");
  }
  return masterKey(dir);
}

/** Opens the hosts, and notifications when there are other processes. */
export async function openHosts(
  database: Database,
  settings: Settings,
  parts: { clock: Clock; log: Log; dir: DataDir },
): Promise<{ hosts: HostService; store: HostStore; notifier: Notifier | undefined }> {
  const store = sqlHostStore(database);
  const notifier = await openNotifier(settings, parts);
  const own = await ownHosts(store, settings, parts);
  const { region } = settings.host;
  const hosts = new HostService({ store, own, ...(region ? { region } : {}), ...(notifier ? { notifier } : {}) });
  await hosts.start();
  return { hosts, store, notifier };
}

export type BeatStore = Pick<HostStore, "renew"> & { close(): Promise<void> };

/** Renews the leases of our hosts; a slower renewal is useless. */
export async function openBeats({ database_direct_url, host }: Settings, store: HostStore): Promise<BeatStore> {
  if (database_direct_url === undefined) return { renew: store.renew, close: async () => {} };
  const { openPostgres } = await import("#stores/postgres/database.ts");
  const call_ms = host.lease_ms * HOST_LIMITS.beat_part;
  const database = await openPostgres(database_direct_url, {
    connections: 1,
    name: "hangar beat",
    call_ms,
    lazy: true,
  });
  return { renew: sqlHostStore(database).renew, close: () => database.close() };
}

async function openNotifier(
  { database_direct_url }: Settings,
  parts: { clock: Clock; log: Log },
): Promise<Notifier | undefined> {
  if (database_direct_url === undefined) return undefined;
  const { openPostgresNotifier } = await import("#stores/postgres/notifier.ts");
  return await openPostgresNotifier(database_direct_url, parts);
}

async function ownHosts(
  store: HostStore,
  { role, hosts, host }: Settings,
  { clock, dir }: { clock: Clock; dir: DataDir },
): Promise<readonly Placing[]> {
  if (role !== "host") rmSync(dir.file(HOST_FILES.place), { force: true });
  if (role === "control") return [];
  if (role === "all") return declaredHosts(hosts);
  const { region, zone, cpus, memory_mb, join_token: token } = host;
  const size = {
    region: region || "local",
    zone,
    cpus: cpus || SHARE * availableParallelism(),
    memory_mb: memory_mb || Math.floor(totalmem() / MIB),
  };
  const own = await joinHost({ store, clock, node_id: dir.node_id }, { ...size, token });
  const place: HostPlace = { id: own.id, region: own.region, zone: own.zone };
  writeFileDurably(dir.file(HOST_FILES.place), `${JSON.stringify(place)}\n`);
  return [own];
}

/** Shares the API's URL: a control process stores it; a host reads it, because its machines' tokens contain it. */
export async function shareBaseUrl(database: Database, { role }: Settings, facts: { base_url: string }): Promise<void> {
  const key = "base_url";
  if (role !== "host") {
    const sql = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    await database.write([{ sql, args: [key, facts.base_url] }]);
    return;
  }
  const row = await readOne<{ value: string }>(database, "SELECT value FROM meta WHERE key = ?", [key]);
  facts.base_url ||= row?.value ?? "";
}

interface DutyParts {
  settings: Settings;
  hosts: HostService;
  notifier: Notifier;
  clock: Clock;
  log: Log;
  dir: DataDir;
  sealer: Sealer;
  driver: RuntimeDriver;
  fence: Fence | undefined;
  store: HostStore;
  /** Renews leases on a dedicated connection, so that load does not delay them. */
  beats: BeatStore;
  machines: MachineStore;
  channel: Channel;
  /** Further calls for other processes. */
  more: { calls: CallHandlers; streams: StreamHandlers } | undefined;
  /** Whether images can be built here, or why not. */
  builds: string;
  /** Called for a lost host, after its machines. */
  onLost(host: Host): Promise<void>;
}

/** Duties of a process among several: leases of its hosts, host watch, and the channel to its machines. */
export class Duty {
  /** Starts nothing without a lease, and reaches machines on all hosts. */
  readonly driver: RuntimeDriver;
  readonly #parts: DutyParts;
  readonly #leases = new Map<string, HostLease>();
  readonly #exemptions: Exemptions | undefined;
  #watch: HostWatch | undefined;
  #machines_module: MachineModule | undefined;
  #started = false;
  #listener: ChannelListener | undefined;

  constructor(parts: DutyParts) {
    this.#parts = parts;
    const { settings, hosts, machines: store, channel, fence, log } = parts;
    this.#exemptions = fence && new Exemptions({ host_ids: hosts.own, fence, store, log });
    for (const id of hosts.own) this.#leases.set(id, this.#lease(id, settings.host.lease_ms));
    const fenced = fencedDriver(parts.driver, () => this.holdsAll());
    this.driver = remoteDriver({ local: fenced, hosts, store, channel });
  }

  holds(host_id: string): boolean {
    return this.#leases.get(host_id)?.valid ?? false;
  }

  holdsAll(): boolean {
    return this.#parts.hosts.own.every((id) => this.holds(id));
  }

  /** Why this process may run nothing at the moment, or undefined. */
  get problem(): string | undefined {
    const without = this.#parts.hosts.own.filter((id) => !this.holds(id));
    return without.length === 0 ? undefined : `host ${without.join(", ")} holds no lease: it was not renewed in time`;
  }

  /** Opens the host listener, acquires the leases of our hosts, starts the module, and starts the host watch. */
  async start(machines_module: MachineModule): Promise<void> {
    const { settings, hosts, store, notifier, clock, log, sealer, driver, dir, more } = this.#parts;
    const runs = hosts.own.length > 0;
    this.#listener = await listenForPeers({
      listen: settings.host.listen,
      sealer,
      calls: { ...more?.calls, ...(runs ? machineCalls(driver) : {}) },
      streams: { ...more?.streams, ...(runs ? machineStreams(driver, clock) : {}) },
      clock,
      log,
    });
    await store.announce({ node_id: dir.node_id, address: this.#address(), seen_at: clock.now() });
    this.#machines_module = machines_module;
    for (const lease of this.#leases.values()) await lease.start();
    await hosts.refresh();
    await machines_module.start();
    this.#started = true;
    const judges = settings.role !== "host";
    const judging = {
      onLost: async (host: Host): Promise<void> => {
        await machines_module.hostLost(host);
        await this.#parts.onLost(host);
      },
      onLeaving: (leaving: readonly Host[]): Promise<void> => machines_module.relocation.again(leaving),
    };
    this.#watch = new HostWatch({ hosts, store, notifier, clock, log, ...(judges ? judging : {}) });
    this.#watch.start();
  }

  async close(): Promise<void> {
    this.#watch?.close();
    await Promise.all(Array.from(this.#leases, ([id, lease]) => this.#leave(id, lease)));
    this.#parts.channel.close();
    await this.#listener?.close();
    await this.#parts.beats.close();
  }

  /** A host without machines needs no grace period. */
  async #leave(host_id: string, lease: HostLease): Promise<void> {
    const { settings, machines } = this.#parts;
    const runs = lease.valid && (await machines.anyAlive(host_id).catch(() => false));
    await lease.leave(runs ? settings.host.restart_grace_ms : 0);
  }

  /** The address for other processes. */
  #address(): string {
    return this.#parts.settings.host.address || (this.#listener?.address ?? "");
  }

  #lease(host_id: string, lease_ms: number): HostLease {
    const { dir, store, beats, clock, log, hosts, notifier, driver, fence, builds } = this.#parts;
    return new HostLease({
      host_id,
      node_id: dir.node_id,
      lease_ms,
      arrival: () => ({ address: this.#address(), facts: { ...factsOf(driver, dir), builds } }),
      store: { find: store.find, take: store.take, renew: beats.renew, leave: store.leave },
      clock,
      log,
      fence: async () => {
        await fence?.shut();
        this.#machines_module?.interrupt();
      },
      clear: async () => {
        // Machines that moved away never run here again.
        await fence?.open((await this.#machines_module?.orphans()) ?? []);
        await this.#machines_module?.removeOrphans();
      },
      open: async () => {
        if (this.#started) await this.#machines_module?.resync();
        const lease = this.#leases.get(host_id);
        if (lease) await this.#exemptions?.look(lease.tenure);
      },
      // Slightly longer than our own fencing: the guard acts when we cannot.
      onRenewed: (left_ms, fence_ms) => {
        fence?.extend(left_ms + fence_ms / 2);
        const lease = this.#leases.get(host_id);
        if (lease?.valid) void this.#exemptions?.look(lease.tenure);
      },
      onTaken: () => {
        notifier.send("hosts", host_id);
        hosts.refresh().catch((error: unknown) => log.warn({ error }, "the hosts could not be read"));
      },
    });
  }
}

function factsOf(driver: RuntimeDriver, dir: DataDir): HostFacts {
  const { suspend, suspend_reason, swap_problem, sqlite_problem } = driver.capabilities();
  const { bavail, bsize } = statfsSync(dir.path);
  return {
    driver: driver.name,
    suspend: suspend === "snapshot" ? "yes" : `${suspend || "no"}: ${suspend_reason}`,
    swap: swap_problem ?? "yes",
    sqlite: sqlite_problem ?? "yes",
    disk_gb: Math.floor((bavail * bsize) / 1024 ** 3),
    version: VERSION,
    arch: arch(),
  };
}
