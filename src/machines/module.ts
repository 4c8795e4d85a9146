/** Constructs the machines module, and starts and stops its parts in order. */
import type { AppService } from "#apps/service.ts";
import { type Bus, LocalBus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import type { EgressPolicy } from "#core/egress-policy.ts";
import { fail } from "#core/errors.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import type { ListenSocket } from "#core/listening.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { HostService } from "#hosts/service.ts";
import type { Host } from "#hosts/types.ts";
import { MachineResponses } from "./api/responses.ts";
import type { RouteParts } from "./api/routing.ts";
import { Events } from "./events/events.ts";
import { SharedBus } from "./events/shared-bus.ts";
import { Waits } from "./events/wait.ts";
import type { VolumeFinder } from "./inputs.ts";
import { learnAddresses } from "./lifecycle/addresses.ts";
import { CheckRunner } from "./lifecycle/checks.ts";
import { Executor } from "./lifecycle/executor.ts";
import { Leases } from "./lifecycle/lease.ts";
import { Metadata } from "./lifecycle/metadata.ts";
import { OrphanCleanup } from "./lifecycle/orphan-cleanup.ts";
import { refOf } from "./lifecycle/phases.ts";
import { Relocation } from "./lifecycle/relocation.ts";
import { Scheduler } from "./lifecycle/scheduler.ts";
import { type MachineUpdate, MachineWriter } from "./lifecycle/writer.ts";
import { MACHINE_LIMITS } from "./limits.ts";
import type { PrivateNetworks } from "./private-networks.ts";
import type { RuntimeDriver } from "./runtime/driver.ts";
import { MachineService } from "./service.ts";
import type { MachineStore } from "./store.ts";

export interface MachineModuleParts {
  store: MachineStore;
  hosts: HostService;
  driver: RuntimeDriver;
  networks: Pick<PrivateNetworks, "prefix">;
  clock: Clock;
  log: Log;
  secrets(app_id: string): Promise<Record<string, string>>;
  /** The app's egress policy. */
  egress(app_id: string): Promise<EgressPolicy>;
  /** Without it, mounts are stored as given and do not affect placement. */
  volumes?: VolumeFinder;
  ids?: Ids;
  /** Time for which logs are kept. */
  logs_kept_ms?: number;
  /** Set when several processes share one database. */
  shared?: {
    notifier: Notifier;
    /** Whether the lease of one of our own hosts is held. */
    holds(host_id: string): boolean;
  };
}

export class MachineModule {
  readonly machines: MachineService;
  readonly leases: Leases;
  readonly waits: Waits;
  readonly metadata: Metadata;
  readonly events: Events;
  readonly writer: MachineWriter;
  readonly bus: Bus<MachineUpdate> & { readonly listeners: number };
  readonly executor: Executor;
  readonly scheduler: Scheduler;
  readonly checks: CheckRunner;
  readonly relocation: Relocation;
  readonly #orphans: OrphanCleanup | undefined;
  readonly #shared_bus: SharedBus | undefined;
  readonly #parts: MachineModuleParts;

  constructor(parts: MachineModuleParts) {
    const { store, hosts, driver, clock, log, secrets, egress } = parts;
    this.#parts = parts;
    const ids = parts.ids ?? randomIds(clock);
    const host_ids = hosts.own;
    const local = new LocalBus<MachineUpdate>({
      onError: (error) => log.error({ error }, "a listener failed"),
      onFull: () => fail("overloaded", "too many open waits and streams (limit bus_listeners)", { retry_after_s: 1 }),
    });
    const { shared } = parts;
    this.#shared_bus = shared && new SharedBus({ local, notifier: shared.notifier, store, clock, log });
    const bus = this.#shared_bus ?? local;
    const writer = new MachineWriter({ store, bus, clock, ids });
    this.bus = bus;
    this.writer = writer;
    this.leases = new Leases({ store, writer, bus, clock, shared: parts.shared !== undefined });
    this.machines = new MachineService({
      store,
      writer,
      leases: this.leases,
      hosts,
      driver,
      networks: parts.networks,
      clock,
      ...(parts.volumes ? { volumes: parts.volumes } : {}),
    });
    this.waits = new Waits({ store, bus, clock });
    this.metadata = new Metadata({ writer, leases: this.leases });
    this.events = new Events({ store, bus });
    const reachable = (id: string): boolean =>
      shared ? host_ids.includes(id) && shared.holds(id) : hosts.reachable(id);
    this.relocation = new Relocation({ store, writer, leases: this.leases, hosts, clock, log, volumes: parts.volumes });
    this.executor = new Executor({ host_ids, store, writer, driver, bus, clock, log, secrets, egress, reachable });
    this.scheduler = new Scheduler({ host_ids, store, writer, bus, clock, log, logs_kept_ms: parts.logs_kept_ms });
    this.checks = new CheckRunner({ host_ids, store, writer, driver, bus, clock, log });
    const busy = (id: string): boolean => this.executor.busy(id);
    this.#orphans = shared && new OrphanCleanup({ host_ids, store, driver, bus, clock, log, busy });
  }

  async start(): Promise<void> {
    this.#shared_bus?.start();
    this.#orphans?.start();
    // Orphans are removed before anything else is read.
    await this.#orphans?.sweep();
    await this.executor.start();
    const { hosts, store, driver, log } = this.#parts;
    // A machine without an IPv4 address is still reachable over IPv6.
    await learnAddresses({ host_ids: hosts.own, store, driver, writer: this.writer }).catch((error: unknown) =>
      log.warn({ error }, "the IPv4 addresses of running machines could not be found out"),
    );
    await this.scheduler.start();
    await this.checks.start();
  }

  /** The leases of our hosts are lost: aborts operations in progress. */
  interrupt(): void {
    this.executor.interrupt();
  }

  /** Machines that moved away from our hosts and may have left something. */
  async orphans(): Promise<string[]> {
    const { store, hosts } = this.#parts;
    return (await Promise.all(hosts.own.map((id) => store.leftovers(id)))).flat();
  }

  /** Removes what moved machines left on our hosts; fails when something remains. */
  async removeOrphans(): Promise<void> {
    await this.#orphans?.clear();
  }

  /** Reads all operations of a host again after its lease returned. */
  async resync(): Promise<void> {
    await this.executor.resync();
  }

  async close(): Promise<void> {
    this.#shared_bus?.close();
    this.leases.close();
    this.#orphans?.close();
    this.scheduler.close();
    await this.checks.close();
    await this.executor.close();
    await this.#parts.driver.close();
  }

  /** Listening sockets of a machine; undefined when it is not running or they cannot be read. */
  async listening(id: string): Promise<ListenSocket[] | undefined> {
    const { store, driver } = this.#parts;
    const machine = await store.find(id);
    const ref = machine?.state === "started" ? refOf(machine) : undefined;
    return ref && (await driver.listening(ref));
  }

  /** Dependencies of the routes. */
  routeParts(apps: AppService): RouteParts {
    const { machines, leases, waits, metadata, events, relocation } = this;
    const { store, driver, hosts, clock } = this.#parts;
    return {
      clock,
      apps,
      machines,
      leases,
      waits,
      metadata,
      events,
      relocation,
      responses: new MachineResponses({ leases, hosts, driver }),
      store,
      hosts,
      driver,
    };
  }

  /** Handles a host's failure or return. */
  async hostState(host_id: string, state: "ok" | "failed"): Promise<void> {
    const host = this.#parts.hosts.seen(host_id);
    // A host with a lease must have fenced itself first; the host watch handles it.
    if (host && host.lease_ms > 0) return;
    if (state === "failed") return await this.scheduler.hostFailed(host_id);
    for (const id of await this.#parts.store.unfinished([host_id])) this.executor.wake(id);
  }

  /** Handles a lost host, on which nothing runs any more: starts standbys and evacuates movable machines. */
  async hostLost(host: Host): Promise<void> {
    await this.scheduler.hostFailed(host.id);
    await this.relocation.evacuate(host);
  }

  /** Destroys all machines of an app and waits until they are removed. */
  async clear(app_id: string): Promise<void> {
    const ids = randomIds(this.#parts.clock);
    const machines = await this.machines.destroyAll(app_id, { name: "the platform", ids });
    const input = { states: ["destroyed"], timeout_s: MACHINE_LIMITS.wait_default_s };
    const never = new AbortController().signal;
    await Promise.all(machines.map(({ id }) => this.waits.wait(id, input, never)));
  }
}
