/** Settings of one process among several on one database. */
import { isIP } from "node:net";
import { address, between, type Given, oneOf, SettingsError, wholeNumber } from "./setting-values.ts";

export type Role = "all" | "control" | "host";

/** This process as one of several hosts; a size of 0 means the box's own. */
export interface OwnHostSetting {
  region: string;
  zone: string;
  cpus: number;
  memory_mb: number;
  lease_ms: number;
  /** Time for which an orderly stopped host is waited for. */
  restart_grace_ms: number;
  listen: { host: string; port: number };
  /** `host:port` as others reach it; empty means the listen address. */
  address: string;
  join_token: string;
  /** The carrier of the private network between hosts, and this box's address for it. */
  network: HostNetwork;
  underlay: string;
}

type HostNetwork = "off" | "vxlan" | "wireguard";

type HostName =
  | "role"
  | "database_url"
  | "region"
  | "zone"
  | "host_cpus"
  | "host_memory_mb"
  | "host_lease"
  | "host_restart_grace"
  | "host_listen"
  | "host_address"
  | "host_network"
  | "join_token";

/** Several processes need a shared database. */
export function roleOf(given: (name: HostName) => Given): Role {
  const role = oneOf(given("role"), "role", ["all", "control", "host"]);
  if (role !== "all" && given("database_url").value === "") {
    throw new SettingsError(
      `${given("role").from}: role ${role} needs --database postgres://… that all processes share`,
    );
  }
  return role;
}

export function ownHost(given: (name: HostName) => Given): OwnHostSetting {
  const name_of = (name: HostName): string => {
    const { value, from } = given(name);
    if (value === "" || /^[a-z0-9-]{1,32}$/.test(value)) return value;
    throw new SettingsError(`${from}: "${value}" is not a ${name}: up to 32 lower-case letters, digits and dashes`);
  };
  const reached = given("host_address");
  if (reached.value !== "") address(reached);
  return {
    region: name_of("region"),
    zone: name_of("zone"),
    cpus: wholeNumber(given("host_cpus"), "host_cpus"),
    memory_mb: wholeNumber(given("host_memory_mb"), "host_memory_mb"),
    lease_ms: between(given("host_lease"), "host_lease", 1, 300) * 1000,
    restart_grace_ms: between(given("host_restart_grace"), "host_restart_grace", 0, 3600) * 1000,
    listen: address(given("host_listen")),
    address: reached.value,
    join_token: given("join_token").value,
    ...networkOf(given),
  };
}

/** The private network needs a numeric address that other boxes can reach. */
function networkOf(given: (name: HostName) => Given): Pick<OwnHostSetting, "network" | "underlay"> {
  const network = oneOf(given("host_network"), "host_network", ["off", "vxlan", "wireguard"]);
  if (network === "off") return { network, underlay: "" };
  if (given("database_url").value === "")
    throw new SettingsError(`${given("host_network").from}: a network between hosts needs --database postgres://…`);
  const { host } = address(given(given("host_address").value === "" ? "host_listen" : "host_address"));
  if (isIP(host) === 0 || /^(127\.|0\.0\.0\.0$|::1?$)/.test(host)) {
    throw new SettingsError(
      `${given("host_network").from}: other hosts send packets to this box, at "${host}"? Say which of its addresses ` +
        "they reach with --host-listen 10.0.0.11:4281, or --host-address when it listens elsewhere",
    );
  }
  return { network, underlay: host };
}
