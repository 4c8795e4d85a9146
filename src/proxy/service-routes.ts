import Type, { type Static } from "typebox";
import { appOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import type { ServiceConfig } from "#machines/config/config-schema.ts";
import type { Directory, Entry } from "#network/directory.ts";
import type { Control } from "./control.ts";
import { DEFAULT_SOFT, isServing, serviceAt } from "./exposure.ts";
import type { Listening } from "./listening.ts";
import type { ProxySettings } from "./settings.ts";
import type { StaticPlace } from "./statics-config.ts";
import { type AppTable, addressesOf, type PortTable } from "./table.ts";
import type { Workers } from "./workers.ts";

const text = Type.String();
const ServiceResponse = Type.Object({
  protocol: text,
  port: Type.Integer(),
  end_port: Type.Integer(),
  handlers: Type.Array(text),
  urls: Type.Array(text, { description: "Its URL." }),
  problems: Type.Array(text, { description: "Why it cannot, if so." }),
  machines: Type.Array(
    Type.Object({
      id: text,
      state: text,
      internal_port: Type.Integer(),
      serving: Type.Boolean({ description: "Whether it gets requests." }),
      problem: Type.Optional(
        Type.String({ description: "Why requests to it fail: what its program listens on instead." }),
      ),
      in_progress: Type.Integer({ description: "Requests or connections, as its concurrency counts." }),
      soft_limit: Type.Integer(),
      hard_limit: Type.Optional(Type.Integer()),
      autostart: Type.Boolean(),
      autostop: text,
    }),
  ),
});

const StaticResponse = Type.Object({
  url_prefix: text,
  source: text,
  problem: Type.Optional(Type.String({ description: "Why nothing is served from there, if so." })),
});

interface Parts {
  control: Control;
  workers: Workers;
  directory: Directory;
  listening: Listening;
  settings: Pick<ProxySettings, "listen_host" | "buckets">;
}

export function serviceRoutes(parts: Parts): Row[] {
  const { control, workers } = parts;
  return [
    route("GET /v1/apps/:app_name/services", {
      summary: "An app's open ports, addresses, machines and their load",
      part: "apps",
      access: "read app",
      pages: inPages("services", ["text", "number"]),
      response: {
        status: 200,
        schema: Type.Object({
          open: Type.Boolean(),
          services: Type.Array(ServiceResponse),
          statics: Type.Array(StaticResponse, { description: "Files that are served without a machine." }),
        }),
      },
      async handle({ page, ...call }) {
        const table = control.table(appOf(call).id);
        const ports = page.of(table?.ports ?? [], ({ protocol, start }) => [protocol, start]);
        return {
          open: table !== undefined,
          services: await Promise.all(ports.map((port) => serviceResponse(parts, appOf(call).id, port))),
          statics: (table ? control.statics(appOf(call).id) : []).map((place) => staticResponse(place, parts.settings)),
        };
      },
    }),
    route("POST /v1/proxy/reload", {
      summary: "Replace the proxy's workers without a dropped request; proxy_id changes its colour",
      part: "platform",
      access: "write account",
      response: { status: 200, schema: Type.Object({ proxy_id: text, workers: Type.Integer() }) },
      async handle() {
        await workers.reload();
        return { proxy_id: workers.colour, workers: workers.running };
      },
    }),
  ];
}

function staticResponse(
  { url_prefix, source, bucket, problem }: StaticPlace,
  { buckets }: Parts["settings"],
): Static<typeof StaticResponse> {
  const why = problem ?? (bucket === undefined ? undefined : whyShut(bucket, buckets));
  return { url_prefix, source, ...(why ? { problem: why } : {}) };
}

function whyShut(bucket: string, buckets: ProxySettings["buckets"]): string | undefined {
  if (!buckets) return "this platform serves no buckets (HANGAR_STATICS_URL is not set)";
  return buckets.closed === bucket ? "that bucket is the platform's own" : undefined;
}

/** The app's URLs, those for a browser first. */
export function urlsOf({ control, settings }: Pick<Parts, "control" | "settings">, app_id: string): string[] {
  const table = control.table(app_id);
  if (!table) return [];
  const places = addressesOf(table, settings.listen_host);
  const rank = ({ options: { http, tls } }: PortTable): number => (http ? (tls ? 0 : 1) : 2);
  return table.ports
    .toSorted((a, b) => rank(a) - rank(b))
    .flatMap((port) => urls(port, port.options.http ? webNames(table, places) : bareNames(table, places)));
}

type Answer = Static<typeof ServiceResponse>;

async function serviceResponse(parts: Parts, app_id: string, port: PortTable): Promise<Answer> {
  const { control, workers, settings } = parts;
  const table = control.table(app_id);
  const places = table ? addressesOf(table, settings.listen_host) : [];
  const closed = workers.problems.filter(
    (one) => one.protocol === port.protocol && one.port >= port.start && one.port <= port.end,
  );
  return {
    protocol: port.protocol,
    port: port.start,
    end_port: port.end,
    handlers: handlerNames(port),
    urls: table ? urls(port, port.options.http ? webNames(table, places) : bareNames(table, places)) : [],
    problems: closed.filter(({ address }) => places.includes(address)).map(({ problem }) => problem),
    machines: await Promise.all(machineResponses(parts, app_id, port)),
  };
}

/** Addresses at which a name under localhost reaches the proxy from this host. */
const LOOPBACK = new Set(["127.0.0.1", "::1", "0.0.0.0", "::"]);
const UNSPECIFIED = new Set(["0.0.0.0", "::"]);
const isLocal = (name: string): boolean => name === "localhost" || name.endsWith(".localhost");

/** Names that resolve to the proxy's listeners, else its addresses. */
function webNames({ shared, addresses, hostnames }: AppTable, places: readonly string[]): string[] {
  const loopback = places.some((address) => LOOPBACK.has(address));
  const names = hostnames.filter((name) => loopback || !isLocal(name));
  return [...(shared ? [] : addresses), ...(shared && names.length === 0 ? places : []), ...names];
}

/** A wildcard address cannot be connected to; the app's name resolves to a real one. */
const bareNames = ({ hostnames: [name] }: AppTable, places: readonly string[]): string[] =>
  places.map((address) => (UNSPECIFIED.has(address) && name !== undefined ? name : address));

function handlerNames({ protocol, options }: PortTable): string[] {
  const names = [
    ...(options.pg_tls ? ["pg_tls"] : options.tls ? ["tls"] : []),
    ...(options.http ? ["http"] : []),
    ...(options.proxy_protocol > 0 ? ["proxy_proto"] : []),
  ];
  return names.length > 0 || protocol === "udp" ? names : ["tcp"];
}

function urls({ protocol, start, options }: PortTable, names: readonly string[]): string[] {
  const scheme = options.http ? (options.tls ? "https" : "http") : protocol;
  const usual = (scheme === "http" && start === 80) || (scheme === "https" && start === 443);
  return names.map((name) => `${scheme}://${name.includes(":") ? `[${name}]` : name}${usual ? "" : `:${start}`}`);
}

type MachineResponse = Answer["machines"][number];

function machineResponses(parts: Parts, app_id: string, port: PortTable): Promise<MachineResponse>[] {
  return parts.directory.machines(app_id).flatMap((machine) => {
    const service = serviceAt(machine, port.protocol, port.start);
    return service ? [machineResponse(parts, machine, service)] : [];
  });
}

async function machineResponse(
  { control, listening }: Parts,
  machine: Entry,
  { protocol, internal_port, concurrency, autostart, autostop }: ServiceConfig,
): Promise<MachineResponse> {
  const { soft_limit, hard_limit } = concurrency ?? {};
  const serving = isServing({ machine });
  const problem = serving ? await listening.reason(machine.id, protocol, internal_port) : undefined;
  return {
    id: machine.id,
    state: machine.state,
    internal_port,
    serving,
    ...(problem ? { problem } : {}),
    in_progress: control.load(machine.id, internal_port),
    soft_limit: soft_limit || DEFAULT_SOFT,
    ...(hard_limit ? { hard_limit } : {}),
    autostart: autostart === true,
    autostop: String(autostop ?? "off"),
  };
}
