/**
 * Metrics put together, part of platform.ts on a page of its own: the engine, what reads machines, and what asks them
 * for metrics of their own. The machines module does not import metrics, nor the metrics module machines; they
 * meet here.
 */
import type { SecretService } from "#apps/secrets.ts";
import type { AuthStore } from "#auth/store.ts";
import type { Bus } from "#core/bus.ts";
import { parseCidr } from "#core/cidr.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { SettingsError } from "#core/setting-values.ts";
import type { Settings } from "#core/settings.ts";
import { SQLITE_PORT } from "#core/sqlite-node.ts";
import type { DriverChoice } from "#drivers/choice.ts";
import { type Denied, readDenied } from "#drivers/net/denied.ts";
import { simDatabases } from "#drivers/runtime/sim/database.ts";
import { simStats } from "#drivers/runtime/sim/stats.ts";
import { simTraffic } from "#drivers/runtime/sim/traffic.ts";
import type { Guard } from "#http/access.ts";
import type { Row } from "#http/route.ts";
import { type MachineUpdate, topics } from "#machines/lifecycle/writer.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Machine } from "#machines/types.ts";
import { type PostgresLogin, PostgresReader } from "#metrics/builtin/postgres.ts";
import { Sampler } from "#metrics/builtin/sampler.ts";
import type {
  BuiltinSample,
  MachineExit,
  MachineStats,
  MeasuredMachine,
  SampleProvider,
  VolumeFacts,
} from "#metrics/builtin/sources.ts";
import { type MetricsEngine, openMetricsEngine } from "#metrics/engine/engine.ts";
import { parseRemoteAddress } from "#metrics/remote/address.ts";
import { openRemoteEngine } from "#metrics/remote/engine.ts";
import { metricsRoutes } from "#metrics/routes.ts";
import { Scraper } from "#metrics/scrape/scraper.ts";
import { ownAddresses, type Reach } from "#proxy/exposure.ts";
import type { ProxyModule } from "#proxy/module.ts";
import type { DataDir } from "#stores/data-dir.ts";

interface MetricsParts {
  push_guard: Pick<Guard, "admit">;
  dir: DataDir;
  authStore: Pick<AuthStore, "orgs">;
  clock: Clock;
  log: Log;
  secrets: Pick<SecretService, "reveal">;
  machines: MeasuredMachines;
  /** Whether machines are measured; queries are always answered. */
  sampled: boolean;
  /** Reads and reaches machines; provided by the driver. */
  stats: MachineStats;
  reach: Reach;
  volumes(): Promise<readonly VolumeFacts[]>;
  /** Further sources, such as the proxy. */
  providers: readonly SampleProvider[];
}

/** Starts its thread on first use. */
export interface LazyEngine {
  (): MetricsEngine;
  /** Whether there may be samples: something was stored or asked for, or the storage is elsewhere. */
  hasMetrics(): boolean;
}

interface MetricsPart {
  engine: LazyEngine;
  rows: Row[];
  start(): Promise<void>;
  close(): Promise<void>;
}

type MetricsSettings = Pick<Settings, "metrics_url" | "metrics_retention_days">;

export function openMetrics(settings: MetricsSettings, parts: MetricsParts): MetricsPart {
  const { clock, log, machines, stats, reach, volumes } = parts;
  const open = engineFrom(settings, parts);
  let opened: MetricsEngine | undefined;
  const lazy = (): MetricsEngine => {
    opened ??= open();
    return opened;
  };
  const hasMetrics = (): boolean => opened !== undefined || settings.metrics_url !== undefined;
  const engine = Object.assign(lazy, { hasMetrics });
  const postgres = new PostgresReader({ machines: machines.list, log, login: loginFrom(parts) });
  const providers = [...parts.providers, postgres.read];
  const sampler = new Sampler({ clock, log, engine, machines: machines.list, stats, volumes, providers });
  const scraper = new Scraper({ clock, log, engine, reach: (machine, port) => reach(placeOf(machine), port) });
  return {
    engine,
    rows: metricsRoutes({ engine, clock, guard: parts.push_guard, targets: (org_id) => scraper.targets(org_id) }),
    async start() {
      if (!parts.sampled) return;
      await machines.start({
        started(machine) {
          scraper.started(machine);
          void sampler.started(machine);
        },
        ended: (id) => scraper.ended(id),
        exited: (exit) => void sampler.exited(exit),
      });
      sampler.start();
    },
    async close() {
      machines.close();
      await Promise.all([sampler.close(), scraper.close(), postgres.close()]);
      await opened?.close();
    },
  };
}

const DAY_MS = 86_400_000;

/** The embedded or configured engine; an invalid setting fails at once. */
function engineFrom(
  { metrics_url, metrics_retention_days }: MetricsSettings,
  parts: MetricsParts,
): () => MetricsEngine {
  const { authStore, clock, log } = parts;
  const dir = parts.dir.file("metrics");
  const limits = { retention_ms: metrics_retention_days * DAY_MS };
  if (metrics_url === undefined) return () => openMetricsEngine({ dir, clock, limits });
  const address = parseRemoteAddress(metrics_url);
  if (!address) {
    throw new SettingsError(
      `metrics_url: ${JSON.stringify(metrics_url)} is neither the address of a VictoriaMetrics (http://127.0.0.1:8428) ` +
        "nor two of a cluster (http://insert:8480/insert/{tenant}/prometheus,http://select:8481/select/{tenant}/prometheus)",
    );
  }
  const tenant = async (org_id: string): Promise<number> =>
    (await authStore.orgs()).find(({ id }) => id === org_id)?.numeric_id ?? 0;
  return () => openRemoteEngine({ dir, address, clock, log, tenant });
}

interface SourceParts {
  choice: DriverChoice;
  dir: DataDir;
  clock: Clock;
  machines: MeasuredMachines;
  proxy: Pick<ProxyModule, "proxySamples">;
  /** The hosts of this process. */
  host_ids: readonly string[];
  /** Where a machine's port is, if the driver does not know. */
  reach?: Reach;
}

/** Simulated traffic only for apps without real requests. */
async function realFirst(real: BuiltinSample[], made_up: SampleProvider): Promise<BuiltinSample[]> {
  const counted = new Set(real.filter(({ counter }) => counter).map(({ labels }) => labels["app"]));
  const rest = (await made_up()).filter(({ labels }) => !counted.has(labels["app"]));
  return [...real.filter(({ labels }) => counted.has(labels["app"])), ...rest];
}

/** How machines of the driver are read and reached. Simulated machines get simulated traffic. */
export async function openSources(parts: SourceParts): Promise<Pick<MetricsParts, "stats" | "reach" | "providers">> {
  const { choice, dir, clock, machines, proxy, host_ids, reach } = parts;
  const traffic = (): BuiltinSample[] => [...proxy.proxySamples(clock.now())];
  if (choice.name === "sim") {
    const made_up = simTraffic({ clock, machines: machines.list });
    const databases = simDatabases({ clock, machines: machines.list });
    const providers = [() => realFirst(traffic(), made_up), databases];
    return { stats: simStats({ clock }), reach: reach ?? (() => undefined), providers };
  }
  const { openRuncStats } = await import("#drivers/runtime/runc/stats/stats.ts");
  const denied = deniedBy(machines, dir.node_id);
  return {
    stats: openRuncStats({ data_dir: dir.path, node_id: dir.node_id, clock }),
    reach: reach ?? ownAddresses(host_ids),
    providers: [traffic, denied],
  };
}

/** Packets denied by the firewall, by running machine. */
function deniedBy(machines: MeasuredMachines, node_id: string): SampleProvider {
  return async () => {
    const { egress, connections } = await readDenied(node_id);
    const sum = (counts: Denied, { private_ip, private_ipv4 }: MeasuredMachine): number =>
      (counts.get(shortAddress(private_ip)) ?? 0) + (counts.get(private_ipv4 ?? "") ?? 0);
    return (await machines.list()).flatMap((machine) => {
      const { org_id, app, region, host, instance } = machine;
      const labels = { app, region, host, instance };
      return [
        { org_id, name: "svc_instance_egress_denied_count", labels, value: sum(egress, machine), counter: true },
        {
          org_id,
          name: "svc_instance_connections_refused_count",
          labels,
          value: sum(connections, machine),
          counter: true,
        },
      ];
    });
  };
}

/** An address in the kernel's notation. */
const shortAddress = (address: string): string => parseCidr(address)?.text ?? address;

const placeOf = (machine: MeasuredMachine) => ({ ...machine, host_id: machine.host });

/** The password set by `hangar postgres create`; without it the database is not queried. */
function loginFrom({ secrets, reach }: MetricsParts) {
  return async (machine: MeasuredMachine, port: number): Promise<PostgresLogin | undefined> => {
    const address = reach(placeOf(machine), port);
    const password = (await secrets.reveal(machine.app_id))["POSTGRES_PASSWORD"];
    return address && password ? { ...address, user: "postgres", password } : undefined;
  };
}

interface Parts {
  host_ids: readonly string[];
  store: MachineStore;
  bus: Bus<MachineUpdate>;
}

interface Listener {
  started(machine: MeasuredMachine): void;
  ended(machine_id: string): void;
  exited(exit: MachineExit): void;
}

/** Metadata key of a hosted database: its port. */
const POSTGRES_PORT_KEY = "hangar_postgres_port";

/** Running machines, as the metrics module needs them: read once, then updated from the bus. */
export class MeasuredMachines {
  readonly #parts: Parts;
  readonly #running = new Map<string, MeasuredMachine>();
  /** Results of checks, by machine. */
  readonly #checks = new Map<string, Machine["checks"]>();
  readonly #ends: (() => void)[] = [];
  #listener: Listener | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  readonly list = async (): Promise<MeasuredMachine[]> => [...this.#running.values()];

  async start(listener: Listener): Promise<void> {
    const { host_ids, bus, store } = this.#parts;
    this.#listener = listener;
    for (const id of host_ids) this.#ends.push(bus.subscribe(topics.host(id), (update) => this.#onUpdate(update)));
    for (const machine of await store.alive(host_ids)) this.#follow(machine);
  }

  close(): void {
    for (const end of this.#ends.splice(0)) end();
  }

  /** Whether each check of a running machine passes. */
  checkSamples(): BuiltinSample[] {
    return [...this.#running.values()].flatMap(({ id, org_id, app, region, host, instance }) =>
      Object.entries(this.#checks.get(id) ?? {}).map(([check, { status }]) => ({
        org_id,
        name: "svc_instance_check_passing",
        labels: { app, region, host, instance, check },
        value: status === "critical" ? 0 : 1,
      })),
    );
  }

  #onUpdate({ machine, events }: MachineUpdate): void {
    for (const { request } of events) {
      if (!request?.exit_event) continue;
      const { guest_exit_code, exit_code, oom_killed, exited_at } = request.exit_event;
      this.#listener?.exited({
        machine: labelsOf(machine),
        exit_code: guest_exit_code,
        oom: oom_killed,
        vm_code: exit_code,
        at_ms: Date.parse(exited_at),
      });
    }
    this.#follow(machine);
  }

  #follow(machine: Machine): void {
    const known = this.#running.get(machine.id);
    const measured = measuredOf(machine);
    if (measured) this.#checks.set(machine.id, machine.checks);
    else this.#checks.delete(machine.id);
    if (measured && known && isSame(known, measured)) return;
    if (known) {
      this.#running.delete(machine.id);
      this.#listener?.ended(machine.id);
    }
    if (!measured) return;
    this.#running.set(machine.id, measured);
    this.#listener?.started(measured);
  }
}

const isSame = (a: MeasuredMachine, b: MeasuredMachine): boolean =>
  a.boot === b.boot && a.instance === b.instance && a.private_ipv4 === b.private_ipv4;

const labelsOf = ({ org_id, app_name, region, host_id, instance_id }: Machine) => ({
  org_id,
  app: app_name,
  region,
  host: host_id,
  instance: instance_id,
});

/** A SQLite node's own are read where the machine's programs have none. */
function metricsOf({ metrics, sqlite }: Machine["config"]): Pick<MeasuredMachine, "metrics"> {
  const found = metrics ?? (sqlite ? { port: SQLITE_PORT, path: "/metrics" } : undefined);
  return found ? { metrics: found } : {};
}

/** Undefined when it is not running. */
function measuredOf(machine: Machine): MeasuredMachine | undefined {
  const { id, app_id, private_ip, private_ipv4, boot, handle, started_at, cpus, memory_mb, config, state } = machine;
  if (state !== "started" || boot === null) return undefined;
  const [mount] = config.mounts ?? [];
  const port = Number(config.metadata?.[POSTGRES_PORT_KEY]);
  return {
    ...labelsOf(machine),
    id,
    app_id,
    private_ip,
    private_ipv4,
    boot,
    handle,
    started_at: started_at ?? machine.updated_at,
    cpus,
    cpu_kind: config.guest?.cpu_kind ?? "shared",
    memory_mb,
    serves: (config.services ?? []).length > 0,
    ...(mount?.volume ? { mount: { path: mount.path, volume_id: mount.volume } } : {}),
    ...metricsOf(config),
    ...(Number.isInteger(port) && port > 0 && port < 65_536 ? { postgres_port: port } : {}),
  };
}
