import { fail } from "#core/errors.ts";
import type { HostStore } from "./store.ts";
import type { Host } from "./types.ts";

export type DeclaredHost = Pick<Host, "id" | "region" | "zone" | "cpus" | "memory_mb">;

/** What there is when none is declared: one host without bounds that stands for every region. */
export const DEFAULT_HOST: DeclaredHost = { id: "0001", region: "local", zone: "0001", cpus: 0, memory_mb: 0 };

export interface Wanted {
  region: string | undefined;
  cpus: number;
  memory_mb: number;
  /** Where it must go, because something it needs is there. */
  host_id?: string;
  zone?: string;
  /** Where it must not go. */
  not_zones?: readonly string[];
}

/** Regions, hosts, what is free, and where a machine goes. */
export class HostService {
  readonly #store: HostStore;
  readonly #declared: readonly DeclaredHost[];
  /** Hosts that have failed, as last written; asked before every operation. */
  readonly #failed = new Set<string>();

  constructor(parts: { store: HostStore; declared: readonly DeclaredHost[] }) {
    this.#store = parts.store;
    this.#declared = parts.declared.length > 0 ? parts.declared : [DEFAULT_HOST];
  }

  async start(): Promise<void> {
    await this.#store.declare(this.#declared);
    for (const host of await this.#store.hosts()) if (host.state === "failed") this.#failed.add(host.id);
  }

  /** The hosts that this process looks after. */
  get own(): string[] {
    return this.#declared.map((host) => host.id);
  }

  get default_region(): string {
    return this.#declared[0]?.region ?? DEFAULT_HOST.region;
  }

  /** Whether any region may be named: a single box without declared hosts is wherever it is said to be. */
  get everywhere(): boolean {
    return this.#declared[0] === DEFAULT_HOST;
  }

  reachable(id: string): boolean {
    return !this.#failed.has(id);
  }

  async hosts(): Promise<Host[]> {
    return await this.#store.hosts();
  }

  async setState(id: string, state: Host["state"]): Promise<void> {
    if (!(await this.#store.setState(id, state))) fail("not_found", `there is no host ${JSON.stringify(id)}`);
    if (state === "failed") this.#failed.add(id);
    else this.#failed.delete(id);
  }

  /** The host with most room among those that may take it. Fails with what was asked, what is free, and where it fits. */
  async place(wanted: Wanted): Promise<Host> {
    const all = (await this.#store.hosts()).filter((host) => host.state === "ok");
    const region = wanted.region ?? this.default_region;
    if (!this.everywhere && !all.some((host) => host.region === region)) unknownRegion(region, all);
    const near = all.filter((host) => (this.everywhere || host.region === region) && allowed(host, wanted));
    const [best] = near.filter((host) => fits(host, wanted)).toSorted((a, b) => room(b) - room(a));
    return best ?? full(region, wanted, near, all);
  }
}

const allowed = (host: Host, { host_id, zone, not_zones }: Wanted): boolean =>
  (host_id === undefined || host.id === host_id) &&
  (zone === undefined || host.zone === zone) &&
  !not_zones?.includes(host.zone);

const free = (host: Host): { cpus: number; memory_mb: number } => ({
  cpus: host.cpus === 0 ? Number.POSITIVE_INFINITY : host.cpus - host.used_cpus,
  memory_mb: host.memory_mb === 0 ? Number.POSITIVE_INFINITY : host.memory_mb - host.used_memory_mb,
});

function fits(host: Host, { cpus, memory_mb }: Wanted): boolean {
  const left = free(host);
  return left.cpus >= cpus && left.memory_mb >= memory_mb;
}

/** The part that is free, of whatever is scarcer there. */
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
  const place = host_id === undefined ? `region ${region}` : `host ${host_id}`;
  const left = near.map(
    (host) => `${amount(free(host).cpus)} cpus and ${amount(free(host).memory_mb)} MB on ${host.id}`,
  );
  const elsewhere = fits_in.length > 0 ? `it would fit in ${fits_in.join(", ")}` : "no region has room for it";
  fail(
    "insufficient_capacity",
    `insufficient resources to create new machine: ${cpus} cpus and ${memory_mb} MB asked for in ${place}, ` +
      `free there: ${left.join("; ") || "nothing"}; ${elsewhere}`,
    {
      retry_after_s: 5,
      facts: { requested: { region, cpus, memory_mb }, free: near.map(shown), fits_in },
      hint: fits_in[0] ? `ask for region ${fits_in[0]}` : "stop a machine, or ask for a smaller one",
    },
  );
}
