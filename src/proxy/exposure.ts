/** Builds an app's routing table from its machines' services. */
import type { Address } from "#core/dial.ts";
import type { ServiceConfig } from "#machines/config/config-schema.ts";
import { checksOf } from "#machines/config/configured-checks.ts";
import type { ImageLayer } from "#machines/runtime/image-source.ts";
import type { Entry } from "#network/directory.ts";
import { isRouted } from "#network/ipv4-blocks.ts";
import { type IpAssignment, isEgress } from "#network/types.ts";
import type { AppNames } from "./certificates.ts";
import { PROXY_LIMITS } from "./limits.ts";
import { staticsOf } from "./statics-config.ts";
import type { AppTable, PortOptions, PortTable, Target } from "./table.ts";

type PortConfig = NonNullable<ServiceConfig["ports"]>[number];

/** Where a machine's port is reachable from here; undefined when it is not. */
export type Reach = (
  machine: Pick<Entry, "id" | "host_id" | "private_ip" | "private_ipv4">,
  port: number,
) => Address | undefined;

/**
 * Uses the machine's own addresses. An IPv4 address is unrouted and valid only on the machine's host: elsewhere it may
 * be another organization's machine.
 */
export const ownAddresses =
  (host_ids: readonly string[]): Reach =>
  ({ host_id, private_ip: host, private_ipv4: ipv4 }, port) =>
    ipv4 !== null && (isRouted(ipv4) || host_ids.includes(host_id)) ? { host, ipv4, port } : { host, port };

interface ExposureParts {
  app: { id: string; name: string; org_id: string; created_at: number };
  machines: readonly Entry[];
  assignments: readonly IpAssignment[];
  /** Host names of the app, beside its own. */
  names: AppNames;
  domain: string;
  reach: Reach;
  /** The slot of a service of a machine; undefined when all are in use. */
  slot(machine_id: string, internal_port: number): number | undefined;
  /** Local layers of a machine's image, as far as known. */
  layers(machine: Entry): ImageLayer[] | undefined;
  /** Machines about to be stopped or suspended: they get no more requests, and requests wait for the outcome. */
  resting: Pick<ReadonlySet<string>, "has">;
  now: number;
}

/** Builds the routing table of an app; undefined when it has no address or no open port. */
export function appTable(parts: ExposureParts): AppTable | undefined {
  const { app, assignments, names, domain } = parts;
  const open = assignments.filter((one) => !isEgress(one));
  const ports = open.length === 0 ? [] : portTables(parts);
  if (ports.length === 0) return undefined;
  return {
    app_id: app.id,
    app_name: app.name,
    org_id: app.org_id,
    hostnames: [`${app.name}.${domain}`, ...names.hostnames],
    reserved: names.reserved,
    // An app with an address of its own leaves the ports of the shared one to others.
    shared: open.some(({ shared }) => shared) || !open.some(({ type }) => type === "v4"),
    addresses: open.filter(({ shared }) => !shared).map(({ ip }) => ip),
    since: app.created_at,
    ports,
    statics: staticsOf(parts.machines, parts.layers).flatMap(({ table }) => table ?? []),
  };
}

/** A service of a machine at one of its exposed ports. */
export interface Offer {
  machine: Entry;
  service: ServiceConfig;
  port: PortConfig;
}

/** TCP ports need handlers to be open; UDP ports have none. */
const isOpen = (service: ServiceConfig, port: PortConfig): boolean =>
  service.protocol === "udp" || (port.handlers ?? []).length > 0;

function offers(machines: readonly Entry[]): Offer[] {
  return machines
    .filter(({ state }) => state !== "destroyed" && state !== "destroying")
    .flatMap((machine) =>
      (machine.config.services ?? []).flatMap((service) =>
        (service.ports ?? []).filter((port) => isOpen(service, port)).map((port) => ({ machine, service, port })),
      ),
    );
}

const rangeOf = (port: PortConfig): { start: number; end: number } => {
  const start = port.port ?? port.start_port ?? 0;
  return { start, end: port.port ?? port.end_port ?? port["end-port"] ?? start };
};

/** Groups an app's services: machines with the same protocol and exposed ports serve one group. */
export function servicesOf(machines: readonly Entry[]): Map<string, Offer[]> {
  return Map.groupBy(offers(machines), ({ service, port }) => {
    const { start, end } = rangeOf(port);
    return `${service.protocol} ${start}${end === start ? "" : `-${end}`}`;
  });
}

function portTables(parts: ExposureParts): PortTable[] {
  const all = [...servicesOf(parts.machines).values()];
  const secure = all.flat().find(({ port }) => port.handlers?.includes("tls") && port.handlers.includes("http"));
  return all.map((group) => portTable(parts, group, secure ? rangeOf(secure.port).start : 443));
}

function portTable(parts: ExposureParts, group: readonly Offer[], https_port: number): PortTable {
  // The newest version decides the port's behaviour, so a deploy changes it with its first machine.
  const newest = group.reduce((a, b) => (b.machine.instance_id > a.machine.instance_id ? b : a));
  const rests = ({ machine }: Offer): boolean => parts.resting.has(machine.id);
  const startable = group.filter((offer) => canStart(offer) || rests(offer) || warmsUp(offer, parts.now));
  return {
    protocol: newest.service.protocol,
    ...rangeOf(newest.port),
    options: portOptions(newest.port, https_port),
    targets: group.filter((offer) => isServing(offer) && !rests(offer)).flatMap((offer) => target(parts, offer)),
    startable: startable.map(({ machine }) => ({ machine_id: machine.id, region: machine.region })),
    empty: emptyWords(group),
  };
}

/** Whether a machine gets requests: started, not cordoned, and no readiness check failing. */
export function isServing({ machine }: Pick<Offer, "machine">): boolean {
  const { state, cordoned, checks } = machine;
  if (state !== "started" || cordoned) return false;
  const failing = Object.keys(checks).filter((name) => checks[name]?.status === "critical");
  if (failing.length === 0) return true;
  const configured = new Map(checksOf(machine));
  return failing.every((name) => configured.get(name)?.kind === "informational");
}

const COMING: readonly string[] = ["starting", "restarting", "replacing"];
/** A machine being stopped or suspended can be started again afterwards. */
const RESTING: readonly string[] = ["stopped", "suspended", "created", "stopping", "suspending"];

/** Whether a request may start the machine, or it is already starting. */
export function canStart({ machine, service }: Pick<Offer, "machine" | "service">): boolean {
  const { state, cordoned, config } = machine;
  if (cordoned || config.disable_machine_autostart === true) return false;
  return COMING.includes(state) || (service.autostart === true && RESTING.includes(state));
}

/**
 * Whether a machine that has just started may still become healthy: its first checks came before its program listened.
 * Requests wait for it, as they did while it was starting.
 */
function warmsUp({ machine }: Offer, now: number): boolean {
  const { state, cordoned, started_at } = machine;
  if (state !== "started" || cordoned || isServing({ machine })) return false;
  return now - (started_at ?? 0) < PROXY_LIMITS.warm_up_ms;
}

/** The service of a machine that is exposed at a port. */
export function serviceAt(machine: Entry, protocol: string, port: number): ServiceConfig | undefined {
  return machine.config.services?.find(
    (service) =>
      service.protocol === protocol &&
      service.ports?.some((one) => rangeOf(one).start <= port && port <= rangeOf(one).end),
  );
}

/** Why no machine responds, and what the owner can do. */
function emptyWords(group: readonly Offer[]): string {
  const machines = group.map(({ machine }) => machine);
  if (machines.every(({ cordoned }) => cordoned))
    return "its machines are cordoned; `hangar machines uncordon` gives one requests again";
  const unwell = machines.filter((machine) => machine.state === "started" && !isServing({ machine }));
  if (unwell.length > 0) {
    const many = `${unwell.length} of ${machines.length}`;
    return `its running machines are cordoned or fail their checks (${many}); \`hangar services\` shows which`;
  }
  const none = machines.length === 1 ? "its machine does not run" : `none of its ${machines.length} machines runs`;
  return (
    `${none}, and autostart is off: \`hangar machines start\` starts one, and with \`autostart\` in its service ` +
    "requests do (`hangar run --autostop` sets that)"
  );
}

function target(parts: ExposureParts, { machine, service, port }: Offer): Target[] {
  const at = parts.reach(machine, service.internal_port);
  const slot = parts.slot(machine.id, service.internal_port);
  if (!at || slot === undefined) return [];
  const { type, soft_limit, hard_limit } = service.concurrency ?? {};
  const h2 = port.http_options?.h2_backend === true && port.handlers?.includes("http") === true;
  return [
    {
      machine_id: machine.id,
      instance_id: machine.instance_id,
      region: machine.region,
      host_id: machine.host_id,
      ...at,
      slot,
      // One HTTP/2 connection carries many requests, so requests are counted.
      mode: h2 ? "requests" : (type ?? "connections"),
      soft: soft_limit || DEFAULT_SOFT,
      hard: hard_limit || UNLIMITED,
      h2,
    },
  ];
}

export const DEFAULT_SOFT = 20;
const UNLIMITED = 2 ** 31 - 1;

export function portOptions(port: PortConfig, https_port: number): PortOptions {
  const has = (name: string): boolean => port.handlers?.some((handler) => handler === name) === true;
  const { http_options: http = {}, tls_options: tls = {}, proxy_proto_options } = port;
  const versions = tls.versions ?? [];
  const only = (version: string): boolean => versions.length > 0 && versions.every((one) => one === version);
  const wants_proxy = has("proxy_proto") || proxy_proto_options !== undefined;
  return {
    http: has("http"),
    tls: has("tls") || has("pg_tls"),
    pg_tls: has("pg_tls"),
    proxy_protocol: !wants_proxy ? 0 : /2/.test(proxy_proto_options?.version ?? "") ? 2 : 1,
    force_https: port.force_https === true,
    compress: http.compress === true,
    h2_backend: http.h2_backend === true,
    pristine: http.response?.pristine === true,
    headers: Object.entries(http.response?.headers ?? {}).flatMap(([name, value]) => answerHeader(name, value)),
    routes: http.routes ?? [],
    idle_ms: (http.idle_timeout ?? 0) * 1000,
    head_ms: Math.min((http.headers_read_timeout ?? 0) * 1000, PROXY_LIMITS.head_max_ms),
    alpn: tls.alpn ?? [],
    self_signed: tls.default_self_signed === true,
    min_version: only("TLSv1.3") ? "TLSv1.3" : "TLSv1.2",
    max_version: only("TLSv1.2") ? "TLSv1.2" : "TLSv1.3",
    https_port,
  };
}

const FRAMING = new Set(["content-length", "transfer-encoding", "connection", "upgrade", "trailer", "keep-alive"]);

/** A string sets the header, false or null removes it; framing headers cannot be changed. */
function answerHeader(name: string, value: unknown): [string, string[]][] {
  const lower = name.toLowerCase();
  if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(lower) || FRAMING.has(lower) || value === true) return [];
  const values = Array.isArray(value) ? value : typeof value === "string" ? [value] : [];
  const clean = values.filter((one): one is string => typeof one === "string" && /^[\t\x20-\x7e\x80-\xff]*$/.test(one));
  return [[lower, clean]];
}
