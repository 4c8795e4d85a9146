import { isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Notifier } from "#core/notifier.ts";
import type { HostStore } from "./store.ts";
import type { Host, HostStatus, Placing, WatchedHost } from "./types.ts";

/** The default when none is declared: one unlimited host for every region. */
const DEFAULT_HOST: Placing = { id: "0001", region: "local", zone: "0001", cpus: 0, memory_mb: 0 };

/** Hosts of a single-box process: the declared ones, or the default. */
export const declaredHosts = (declared: readonly Placing[]): readonly Placing[] =>
  declared.length > 0 ? declared : [DEFAULT_HOST];

export interface Wanted {
  region: string | undefined;
  cpus: number;
  memory_mb: number;
  /** Required host, because something it needs is there. */
  host_id?: string;
  zone?: string;
  /** Excluded zones. */
  not_zones?: readonly string[];
  not_hosts?: readonly string[];
}

/** Hosts whose free fraction differs by less count as equally empty. */
const LEVEL = 0.05;

interface HostParts {
  store: HostStore;
  /** The hosts of this process; none in a control process. */
  own: readonly Placing[];
  /** Notifies other processes, if any. */
  notifier?: Notifier;
  /** Default region when this process has no host itself. */
  region?: string;
}

/** Regions, hosts, capacity and placement. */
export class HostService {
  readonly #parts: HostParts;
  /** All hosts, as last read or written; reachability is checked before every operation. */
  #known: readonly Host[] = [];
  #watched: ReadonlyMap<string, WatchedHost> = new Map();
  /** Round robin among equally empty hosts. */
  #turn = 0;

  constructor(parts: HostParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { store, own } = this.#parts;
    if (own.length > 0) await store.declare(own);
    await this.refresh();
  }

  /** The hosts of this process. */
  get own(): string[] {
    return this.#parts.own.map((host) => host.id);
  }

  get default_region(): string {
    const { own, region } = this.#parts;
    return own[0]?.region ?? region ?? this.#known[0]?.region ?? DEFAULT_HOST.region;
  }

  /** Whether any region may be named: a single box without declared hosts accepts all. */
  get everywhere(): boolean {
    return this.#parts.own[0] === DEFAULT_HOST && this.#known.every(({ id }) => id === DEFAULT_HOST.id);
  }

  /** An unknown region is accepted without declared hosts: then it is only a name. */
  regionWarnings(region: string | undefined): string[] {
    if (!region || !this.everywhere || region === this.default_region) return [];
    return [
      `region ${region} is a name only: this box declares no hosts, so everything runs in region ${this.default_region}`,
    ];
  }

  reachable(id: string): boolean {
    return this.seen(id)?.state !== "failed";
  }

  /** `unknown`: silent for so long that its movable machines have been fenced. */
  status(id: string): HostStatus {
    if (!this.reachable(id)) return "unreachable";
    return this.isSilent(id) ? "unknown" : "ok";
  }

  /** Without a recent heartbeat: it has fenced its movable machines, or does not run. */
  isSilent(id: string): boolean {
    return this.#watched.get(id)?.silent ?? false;
  }

  /** When its lease ends unless it is renewed; undefined when it has ended or there is none. */
  leaseEndsAt(id: string): number | undefined {
    return this.#watched.get(id)?.lease_ends_at;
  }

  /** Hosts with this status, as far as is known here. */
  withStatus(statuses: readonly string[]): string[] {
    return this.#known.map(({ id }) => id).filter((id) => statuses.includes(this.status(id)));
  }

  /** Reported by the host watch at each check. */
  setWatched(watched: ReadonlyMap<string, WatchedHost>): void {
    this.#watched = watched;
  }

  /** Whether machines must leave it: it is lost or being drained. */
  leaving(id: string): boolean {
    const host = this.seen(id);
    return host?.state === "failed" || host?.draining === true;
  }

  /** A host as it was last seen. */
  seen(id: string): Host | undefined {
    return this.#known.find((host) => host.id === id);
  }

  /** Reads and caches the hosts. */
  async refresh(): Promise<readonly Host[]> {
    this.#known = await this.#parts.store.hosts();
    return this.#known;
  }

  async hosts(): Promise<Host[]> {
    return await this.#parts.store.hosts();
  }

  async find(id: string): Promise<Host> {
    return (await this.#parts.store.find(id)) ?? unknownHost(id);
  }

  /**
   * Sets the state for an operator. A host with a lease that is marked as failed notices at its next renewal and fences
   * itself; a released one returns by itself.
   */
  async setState(id: string, state: Host["state"]): Promise<void> {
    const { store } = this.#parts;
    const host = await this.find(id);
    const shown = state === "ok" && host.lease_ms > 0 ? host.state : state;
    await this.#changed(await store.setState(id, shown, state === "failed" && host.lease_ms > 0), id);
  }

  async setCordoned(id: string, cordoned: boolean): Promise<void> {
    await this.#changed(await this.#parts.store.setCordoned(id, { cordoned, draining: false }), id);
  }

  /** Cordons the host and moves its machines away. */
  async setDraining(id: string): Promise<void> {
    await this.#changed(await this.#parts.store.setCordoned(id, { cordoned: true, draining: true }), id);
  }

  /** Deletes a host without machines whose lease has ended: a process that still has it would go on without a host. */
  async forget(id: string): Promise<void> {
    const host = await this.find(id);
    if (this.own.includes(id)) fail("conflict", `host ${id} is the host of this process`);
    if (host.lease_ms > 0) refuseLeased(host, this.#watched.get(id));
    if (!(await this.#parts.store.forget(id)))
      fail("conflict", `host ${id} still has machines or volumes; move or destroy them first`);
    await this.#changed(true, id);
  }

  async #changed(found: boolean, id: string): Promise<void> {
    if (!found) unknownHost(id);
    await this.refresh();
    this.#parts.notifier?.send("hosts", id);
  }

  /** Chooses the host with most free capacity. Fails with what was requested, what is free, and where it would fit. */
  async place(wanted: Wanted): Promise<Host> {
    const known = await this.#parts.store.hosts();
    const all = known.filter((host) => host.state === "ok" && !host.cordoned);
    const region = wanted.region ?? this.default_region;
    // A region whose hosts are all lost or cordoned still exists.
    if (!this.everywhere && !known.some((host) => host.region === region)) unknownRegion(region, known);
    const near = all.filter((host) => (this.everywhere || host.region === region) && allowed(host, wanted));
    const roomy = near.filter((host) => fits(host, wanted));
    const most = Math.max(...roomy.map(room));
    // Concurrent requests see the same emptiest host; round robin spreads them.
    const level = roomy.filter((host) => room(host) >= most - LEVEL);
    // An empty list has no element to pick.
    return level[this.#turn++ % level.length] ?? full(region, wanted, near, all);
  }
}

function refuseLeased({ id, state }: Host, watched: WatchedHost | undefined): void {
  // Without an end it has ended; a process that has just begun to watch does not know yet.
  if (watched ? watched.lease_ends_at === undefined : state === "failed") return;
  const ends_at = watched?.lease_ends_at;
  const until = ends_at === undefined ? "is not known yet" : `runs until ${isoTime(ends_at)}`;
  fail("conflict", `host ${id} cannot be removed yet: its lease ${until}, or longer if its process still renews it`, {
    hint: "stop its process, if it runs, and remove the host when its lease has ended",
    ...(ends_at === undefined ? {} : { facts: { lease_ends_at: isoTime(ends_at) } }),
  });
}

function unknownHost(id: string): never {
  fail("not_found", `there is no host ${JSON.stringify(id.slice(0, 16))}`);
}

const allowed = (host: Host, { host_id, zone, not_zones, not_hosts }: Wanted): boolean =>
  (host_id === undefined || host.id === host_id) &&
  (zone === undefined || host.zone === zone) &&
  !not_zones?.includes(host.zone) &&
  !not_hosts?.includes(host.id);

/** Free capacity of a host. */
export const free = (host: Host): { cpus: number; memory_mb: number } => ({
  cpus: host.cpus === 0 ? Number.POSITIVE_INFINITY : host.cpus - host.used_cpus,
  memory_mb: host.memory_mb === 0 ? Number.POSITIVE_INFINITY : host.memory_mb - host.used_memory_mb,
});

function fits(host: Host, { cpus, memory_mb }: Wanted): boolean {
  const left = free(host);
  return left.cpus >= cpus && left.memory_mb >= memory_mb;
}

/** The free fraction of the scarcer resource. */
function room(host: Host): number {
  const cpus = host.cpus === 0 ? 1 : 1 - host.used_cpus / host.cpus;
  const memory = host.memory_mb === 0 ? 1 : 1 - host.used_memory_mb / host.memory_mb;
  return Math.min(cpus, memory);
}

function unknownRegion(region: string, hosts: readonly Host[]): never {
  const regions = [...new Set(hosts.map((host) => host.region))].join(", ");
  fail("invalid_request", `body.region ${JSON.stringify(region)} is not a region here; there is ${regions || "none"}`, {
    details: [{ path: "body.region", problem: "is not a region here", allowed: regions }],
  });
}

const amount = (n: number): number | "unbounded" => (Number.isFinite(n) ? n : "unbounded");
const shown = (host: Host) => ({
  host: host.id,
  region: host.region,
  zone: host.zone,
  cpus: amount(free(host).cpus),
  memory_mb: amount(free(host).memory_mb),
});

function full(region: string, wanted: Wanted, near: readonly Host[], all: readonly Host[]): never {
  const { cpus, memory_mb, host_id } = wanted;
  const fits_in = [...new Set(all.filter((host) => fits(host, wanted)).map((host) => host.region))];
  const place = host_id === undefined ? `in region ${region}` : `on host ${host_id}`;
  const left = near.map(
    (host) => `${amount(free(host).cpus)} cpus and ${amount(free(host).memory_mb)} MB on ${host.id}`,
  );
  const elsewhere = fits_in.length > 0 ? `it would fit in ${fits_in.join(", ")}` : "no region has room for it";
  fail(
    "insufficient_capacity",
    `insufficient resources to create new machine: ${cpus} cpus and ${memory_mb} MB requested ${place}, ` +
      `free there: ${left.join("; ") || "nothing"}; ${elsewhere}`,
    {
      retry_after_s: 5,
      facts: { requested: { region, cpus, memory_mb }, free: near.map(shown), fits_in },
      hint: fits_in[0] ? `request region ${fits_in[0]}` : "stop a machine, or request a smaller one",
    },
  );
}
