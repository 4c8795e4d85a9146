/** Constructs the edge proxy, and starts and stops its parts in order. */
import type { ReleaseStore } from "#apps/release-store.ts";
import type { AppStore } from "#apps/store.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Row } from "#http/route.ts";
import type { MachineModule } from "#machines/module.ts";
import type { ImageFiles } from "#machines/runtime/image-source.ts";
import type { MachineStore } from "#machines/store.ts";
import { Addresses } from "#network/addresses.ts";
import { Directory, type Entry } from "#network/directory.ts";
import type { EgressEnforcer } from "#network/egress-enforcer.ts";
import { type NetworkListener, NetworkListeners } from "#network/network-listeners.ts";
import { addressRoutes } from "#network/routes.ts";
import type { AddressStore } from "#network/store.ts";
import { Authority } from "./authority.ts";
import { certificateRoutes } from "./certificate-routes.ts";
import { Certificates } from "./certificates.ts";
import { Control } from "./control.ts";
import { DnsHook } from "./dns-hook.ts";
import { ownAddresses, type Reach } from "./exposure.ts";
import { lookUpTxt } from "./host-names.ts";
import { type Busyness, IdleWatch, restOf } from "./idle.ts";
import { ImageLayers } from "./image-layers.ts";
import type { LastKnownTables } from "./last-known.ts";
import { PROXY_LIMITS } from "./limits.ts";
import { Listening } from "./listening.ts";
import { isOfApp, type OwnService } from "./own-service.ts";
import { ProxyPeers } from "./proxy-peers.ts";
import { RecentRequests } from "./recent-requests.ts";
import { requestRoutes } from "./request-routes.ts";
import { type ProxySample, Totals } from "./samples.ts";
import { serviceRoutes, urlsOf } from "./service-routes.ts";
import type { ProxySettings } from "./settings.ts";
import { Slots } from "./slots.ts";
import { Starter } from "./starter.ts";
import { statusRoutes } from "./status-routes.ts";
import type { ProxyStore } from "./store.ts";
import type { Report } from "./table.ts";
import { TraceExporter } from "./trace-exporter.ts";
import { type Colour, Workers } from "./workers.ts";
import { selfSigned } from "./x509.ts";

export interface ProxyParts {
  settings: ProxySettings;
  machines: Pick<MachineModule, "machines" | "bus" | "listening">;
  store: MachineStore;
  apps: Pick<AppStore, "findApp" | "apps">;
  releases: Pick<ReleaseStore, "newestOfEach">;
  /** Whether to answer DNS queries in private networks, and the other services there. */
  names: boolean;
  listeners?: readonly NetworkListener[];
  upstreams?: readonly { host: string; port: number }[] | undefined;
  egress?: EgressEnforcer | undefined;
  host_ids: readonly string[];
  hostStatus(host_id: string): "ok" | "unknown" | "unreachable";
  region: string;
  addressStore: AddressStore;
  proxyStore: ProxyStore;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  /** Where a machine's port is reachable; by default at its private address. */
  reach?: Reach;
  /** Files of images, for static sites. */
  images: ImageFiles;
  /** Stores the served tables, for a start without the database. */
  last_known?: LastKnownTables | undefined;
  /** Set for one of several control processes. */
  among?: { node_id: string; notifier: Notifier };
}

export class ProxyModule {
  readonly rows: Row[];
  readonly directory: Directory;
  readonly workers: Workers;
  readonly control: Control;
  readonly certificates: Certificates;
  readonly #parts: ProxyParts;
  readonly #authority: Authority;
  readonly #addresses: Addresses;
  readonly #starter: Starter;
  readonly #idle: IdleWatch;
  readonly #peers: ProxyPeers | undefined;
  readonly #totals = new Totals();
  readonly #recent = new RecentRequests();
  readonly #exporter: TraceExporter | undefined;
  readonly #listening: Listening;
  readonly #names: NetworkListeners | undefined;
  readonly #closing = new AbortController();
  #staying = false;

  constructor(parts: ProxyParts) {
    this.#parts = parts;
    const { settings, clock, log, machines, store, host_ids, region } = parts;
    const host_id = host_ids[0] ?? "";
    const { traces } = settings;
    this.#exporter = traces && new TraceExporter({ setting: traces, region, host_id, clock, log });
    const slots = new Slots();
    this.#listening = new Listening({ read: (id) => machines.listening(id), clock });
    this.directory = new Directory({ store, bus: machines.bus });
    this.#addresses = new Addresses({
      store: parts.addressStore,
      clock,
      listen_host: settings.listen_host,
      pool: settings.addresses,
      region,
      onChange: () => this.#refresh(),
    });
    const { listen_host, domain } = settings;
    const fallback = selfSigned([domain, `*.${domain}`], clock.now());
    this.workers = new Workers({
      settings: {
        listen_host,
        fallback,
        region,
        host_id,
        buckets: settings.buckets,
        traces: traces && { ratio: traces.ratio },
      },
      count: settings.workers,
      slots,
      clock,
      log,
      keepColour: (colour) => parts.proxyStore.putValue("colour", colour),
      onReport: (report, colour) => this.#onUpdate(report, colour),
      onTables: () => parts.last_known?.changed(),
    });
    this.#authority = this.#openAuthority();
    this.certificates = new Certificates({
      store: parts.proxyStore,
      sealer: parts.sealer,
      clock,
      log,
      own: { domain, hosts: settings.own_hosts },
      issuer: this.#authority,
      lookup: lookUpTxt,
      publish: (certificates) => this.workers.setCertificates(certificates),
      onChange: (app_id) => this.control.touch(app_id),
      runner: parts.among?.node_id ?? "alone",
    });
    this.control = new Control({
      directory: this.directory,
      addresses: this.#addresses,
      names: (app_id) => this.certificates.names(app_id),
      workers: this.workers,
      slots,
      domain,
      reach: parts.reach ?? ownAddresses(host_ids),
      layers: new ImageLayers({ images: parts.images, onChange: (app_id) => this.control.touch(app_id), log }),
      clock,
      log,
    });
    this.#starter = new Starter({ directory: this.directory, machines: machines.machines, clock, log });
    this.#peers = this.#openPeers();
    this.#idle = new IdleWatch({
      apps: () => this.control.machines(),
      busyness: (machine) => this.#busyness(machine),
      load: ({ id }, port) => this.control.load(id, port) + (this.#peers?.use(id) ?? 0),
      takePeak: ({ id }, port) => this.control.takePeak(id, port),
      withdraw: (machine) => this.control.withdraw(machine),
      others: this.#peers,
      machines: machines.machines,
      idle_s: settings.autostop_idle_s,
      clock,
      log,
    });
    this.#names = parts.names ? this.#openNames() : undefined;
    this.rows = this.#routes();
  }

  #routes(): Row[] {
    const { settings, apps, releases, store, clock } = this.#parts;
    return [
      ...addressRoutes(this.#addresses),
      ...certificateRoutes({
        certificates: this.certificates,
        isTrusted: ({ is_operator }) => is_operator === true || settings.hostname_proof === "off",
      }),
      ...serviceRoutes({
        control: this.control,
        workers: this.workers,
        directory: this.directory,
        listening: this.#listening,
        settings,
      }),
      ...requestRoutes(this.#recent),
      ...statusRoutes({
        apps,
        releases,
        store,
        clock,
        listening: this.#listening,
        hostStatus: this.#parts.hostStatus,
        urls: (app_id) => this.urls(app_id),
      }),
    ];
  }

  #openNames(): NetworkListeners {
    const { apps, host_ids, clock, log, listeners = [], upstreams, egress } = this.#parts;
    const loadApp = async (name: string): Promise<void> => {
      const app = await apps.findApp(name);
      if (app) await this.directory.load(app);
    };
    const parts = { directory: this.directory, host_ids, loadApp, upstreams, egress, clock, log, listeners: listeners };
    return new NetworkListeners(parts);
  }

  #openPeers(): ProxyPeers | undefined {
    const { among, proxyStore: store, clock, log } = this.#parts;
    return (
      among &&
      new ProxyPeers({
        ...among,
        store,
        clock,
        log,
        uses: () => this.#uses(),
        find: (id) => this.directory.find(id),
        withdraw: (machine) => this.control.withdraw(machine),
      })
    );
  }

  /** Serves host names of the platform's own, from now on until it closes. */
  serveOwn(own: OwnService): void {
    const { region, host_ids } = this.#parts;
    this.control.serveOwn(own, { region, host_id: host_ids[0] ?? "" });
  }

  /** The app's URLs, those for a browser first. */
  urls(app_id: string): string[] {
    return urlsOf({ control: this.control, settings: this.#parts.settings }, app_id);
  }

  async start(): Promise<void> {
    // A restarted proxy takes the other colour, so that its series differ from those of the previous one.
    await this.workers.turn((await this.#parts.proxyStore.value("colour")) === "blue" ? "green" : "blue");
    this.#exporter?.start();
    await this.directory.start();
    this.#names?.start();
    this.#peers?.start();
    await this.certificates.start();
    await this.control.refresh();
    this.#keepTables();
    void this.#every(PROXY_LIMITS.reopen_ms, () => this.control.refresh());
    const look_ms = Math.min(PROXY_LIMITS.idle_look_ms, (this.#parts.settings.autostop_idle_s * 1000) / 4);
    void this.#every(Math.max(look_ms, PROXY_LIMITS.sweep_ms), async () => {
      await this.#peers?.exchange();
      await this.#idle.look();
    });
  }

  #openAuthority(): Authority {
    const { proxyStore: store, sealer, clock, log, settings } = this.#parts;
    return new Authority({
      store,
      sealer,
      clock,
      log,
      directory_url: settings.acme_directory,
      directory_ca: settings.acme_ca,
      records: settings.acme_dns_hook === undefined ? undefined : new DnsHook(settings.acme_dns_hook, log),
      answer: async (challenges) => {
        this.workers.setChallenges(challenges);
        await this.workers.settled();
      },
    });
  }

  /** At `close` the listeners keep serving the last tables until `leave`: another process will open its own. */
  stay(): void {
    this.#staying = true;
  }

  /** For a process that runs machines without an edge proxy: starts only DNS. */
  async startNames(): Promise<void> {
    this.#keepTables();
    if (!this.#names) return;
    await this.directory.start();
    this.#names.start();
  }

  /** DNS answers in the network of this address while `work` runs. */
  async withNames<T>(private_ip: string, work: () => Promise<T>): Promise<T> {
    return this.#names ? await this.#names.holding(private_ip, work) : await work();
  }

  #keepTables(): void {
    const { last_known, region, host_ids } = this.#parts;
    last_known?.follow(() => {
      const { apps, certificates } = this.workers.tables;
      // What the platform serves itself ends with its process.
      return {
        apps: apps.filter(isOfApp),
        certificates,
        region,
        host_id: host_ids[0] ?? "",
      };
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#parts.last_known?.close();
    this.certificates.close();
    this.#authority.close();
    this.#names?.close();
    this.directory.close();
    await this.#peers?.close();
    if (!this.#staying) await this.workers.close();
    await this.#exporter?.close();
  }

  /** The listeners of another process are open: ours close after finishing their requests. */
  async leave(): Promise<void> {
    await this.workers.close(true);
  }

  /**
   * All `svc_edge_` and `svc_app_` series at present: counters and histograms as totals, `svc_app_concurrency` as a
   * gauge. `now` is the time of the scrape, in milliseconds.
   */
  *proxySamples(now: number): Generator<ProxySample> {
    yield* this.#totals.samples(now);
    for (const machines of this.control.machines()) {
      for (const { id, instance_id, org_id, app_name, region, host_id, state, config } of machines) {
        if (state !== "started") continue;
        const value = (config.services ?? []).reduce((sum, one) => sum + this.control.load(id, one.internal_port), 0);
        const labels = { app: app_name, region, host: host_id, instance: instance_id, proxy_id: this.workers.colour };
        yield { org_id, name: "svc_app_concurrency", labels, value };
      }
    }
  }

  /** Load of a machine through all edge proxies of the platform. */
  #busyness(machine: Entry): Busyness {
    const own = this.control.busyness(machine);
    const load = this.#peers?.use(machine.id);
    return load === undefined ? own : { load: own.load + load, active_at_s: this.#now_s };
  }

  #uses(): Record<string, number> {
    const { autostop_idle_s } = this.#parts.settings;
    const used: Record<string, number> = {};
    for (const machines of this.control.machines()) {
      for (const machine of machines) {
        if (machine.state !== "started" || !restOf(machine)) continue;
        const { load, active_at_s } = this.control.busyness(machine);
        if (load > 0 || this.#now_s - active_at_s < autostop_idle_s) used[machine.id] = load;
      }
    }
    return used;
  }

  get #now_s(): number {
    return Math.floor(this.#parts.clock.monotonic() / 1000);
  }

  #onUpdate(report: Report, colour: Colour): void {
    const { clock, log } = this.#parts;
    if (report.type === "unreachable") void this.#explain(report.machine_id, report.port);
    else if (report.type === "counts") this.#totals.add(report.counts.filter(isOfApp), colour, clock.now());
    else if (report.type === "requests") this.#recent.add(report.app_id, report.requests);
    else if (report.type === "spans") this.#exporter?.add(report.spans, report.dropped);
    else if (report.type === "start" && !this.#closing.signal.aborted) {
      this.#starter.start(report).catch((error: unknown) => log.error({ error }, "autostart failed"));
    }
  }

  async #explain(machine_id: string, port: number): Promise<void> {
    this.workers.explain(machine_id, port, await this.#listening.reason(machine_id, "tcp", port));
  }

  /** Applies changed addresses: when this resolves, the ports are open or closed. */
  async #refresh(): Promise<void> {
    try {
      await this.control.refresh();
      await this.control.settled();
    } catch (error) {
      this.#parts.log.warn({ error }, "addresses could not be read");
    }
  }

  async #every(ms: number, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await clock.sleep(ms, signal).catch(() => {});
      if (signal.aborted) return;
      await work().catch((error: unknown) => log.warn({ error }, "the proxy's upkeep failed"));
    }
  }
}
