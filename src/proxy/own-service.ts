import { portOptions } from "./exposure.ts";
import type { AppTable, PortTable, Target } from "./table.ts";

/** Host names that the platform itself serves, at a port of this box, beside those of apps. */
export interface OwnService {
  name: string;
  /** In lower case; `*.name` covers one more label. */
  hostnames: string[];
  /** Ports of the shared address. With one that has TLS, those without lead there. */
  ports: { port: number; tls: boolean }[];
  /** Where it listens on loopback. */
  local_port: number;
}

/** No organization has this id: a replay from here leads to none, and its requests are in no one's metrics. */
const OWN_ORG = "platform";

export const isOfApp = ({ org_id }: { org_id: string }): boolean => org_id !== OWN_ORG;

export function ownTable(own: OwnService, place: Pick<Target, "region" | "host_id" | "slot">): AppTable {
  const secure = own.ports.find(({ tls }) => tls)?.port;
  return {
    app_id: `${OWN_ORG} ${own.name}`,
    app_name: own.name,
    org_id: OWN_ORG,
    hostnames: own.hostnames,
    reserved: [],
    shared: true,
    addresses: [],
    // A port that an app has already stays the app's.
    since: Number.MAX_SAFE_INTEGER,
    ports: own.ports.map(({ port, tls }) => portTable(own, { port, tls, secure }, place)),
    statics: [],
  };
}

function portTable(
  { name, local_port }: OwnService,
  { port, tls, secure }: { port: number; tls: boolean; secure: number | undefined },
  place: Pick<Target, "region" | "host_id" | "slot">,
): PortTable {
  const handlers: ("http" | "tls")[] = tls ? ["tls", "http"] : ["http"];
  const config = { port, handlers, force_https: !tls && secure !== undefined };
  return {
    protocol: "tcp",
    start: port,
    end: port,
    options: portOptions(config, secure ?? port),
    targets: [
      {
        machine_id: name,
        instance_id: name,
        host: "127.0.0.1",
        port: local_port,
        mode: "requests",
        soft: UNLIMITED,
        hard: UNLIMITED,
        h2: false,
        ...place,
      },
    ],
    startable: [],
    empty: `${name} are not served here`,
  };
}

const UNLIMITED = 2 ** 31 - 1;
