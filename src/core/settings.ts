import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { parse as parseToml } from "smol-toml";
import { messageOf } from "./assert.ts";
import { FLY_SETTINGS, type FlySetting, flySettings } from "./fly-settings.ts";
import { type KeptLogs, keptLogs, LOG_SETTINGS } from "./log-settings.ts";
import { type IoLimits, MACHINE_SETTINGS, machineIo } from "./machine-settings.ts";
import { NETWORK_SETTINGS, type NetworkSetting, networkSettings } from "./network-settings.ts";
import { PROXY_SETTINGS, type ProxySetting, proxySettings } from "./proxy-settings.ts";
import { address, between, type Given, hostList, oneOf, SettingsError, wholeNumber } from "./setting-values.ts";
import { DATABASE_SETTINGS, type DatabaseSetting, databaseSettings } from "./settings-database.ts";
import { type OwnHostSetting, ownHost, type Role, roleOf } from "./settings-hosts.ts";
import { SPRITE_SETTINGS } from "./sprite-settings.ts";
import { closest } from "./words.ts";

export type { OwnHostSetting, Role } from "./settings-hosts.ts";

/**
 * All settings, one row each: the environment variable, the flag and the key in the config file follow from
 * the name (`data_dir`: HANGAR_DATA_DIR, --data-dir, data_dir). A flag wins over the environment, the
 * environment over the file. docs/settings.md is generated from this table.
 */
export const SETTINGS = {
  config: { default: "", words: "Path of a TOML file with these settings; a missing file is an error." },
  data_dir: { default: "./.hangar", words: "Data directory: database, keys, token, logs." },
  listen: { default: "127.0.0.1:4280", words: "Listen address of the API, its documentation and the dashboard." },
  base_url: { default: "", words: "Public origin of the API; default: http:// + listen." },
  driver: {
    default: "auto",
    words: "What runs machines: `runc`, `sim` (simulated), or `auto` (runc if the host supports it).",
  },
  suspend: {
    default: "auto",
    words:
      "How machines are suspended: `auto` (CRIU snapshot on disk; frozen in memory where CRIU does not work), or `freeze` (always in memory: resumes within milliseconds, keeps using the memory, is lost when the host restarts).",
  },
  ...DATABASE_SETTINGS,
  role: {
    default: "all",
    words:
      "Role of this process: `all`, or, with several processes on one PostgreSQL, `control` (API and edge proxy) or `host` (runs machines). docs/hosts.md",
  },
  region: { default: "", words: "Region of this host; default: `local`." },
  zone: { default: "", words: "Failure zone of this host, such as a rack; default: its own." },
  host_cpus: {
    default: "0",
    words: "CPUs that this host offers to machines in total; 0: eight per physical CPU (CPUs are shared).",
  },
  host_memory_mb: {
    default: "0",
    words: "Memory (MB) that this host offers to machines in total; 0: its physical memory.",
  },
  host_lease: {
    default: "15",
    words:
      "Lease of this host in seconds: without a renewal the host counts as lost, and freezes the machines that another host may start before that.",
  },
  host_restart_grace: {
    default: "60",
    words: "Seconds, 0 to 3600, that a host process stopped with SIGTERM has to restart before its machines move.",
  },
  host_listen: {
    default: "127.0.0.1:0",
    words: "Listen address for other processes of the platform (TLS): logs, exec, terminals, imported images.",
  },
  host_address: { default: "", words: "The address at which others reach `host_listen`, if it differs." },
  host_network: {
    default: "off",
    words:
      "Overlay network between hosts: `wireguard`, `vxlan` (not encrypted, for a trusted network), or `off`. Needs --host-listen with an address that the other hosts can reach.",
  },
  join_token: { default: "", words: "Join token for the first start of a new host, from `hangar hosts join-token`." },
  metrics_url: {
    default: "",
    words:
      "URL of a VictoriaMetrics that stores metrics, such as `http://127.0.0.1:8428`, or two URLs of a cluster with " +
      "`{tenant}` in them (docs/metrics.md); default: the embedded engine.",
  },
  metrics_retention_days: { default: "15", words: "Retention of metrics in the embedded engine, in days: 1 to 36500." },
  master_key: {
    default: "",
    words: "Encryption key of all secrets, base64 of 32 bytes; default: `master.key` in the data directory.",
  },
  rate_limit: {
    default: "0",
    words: "Requests per second per token (burst: one second's worth); 0: no limit.",
  },
  volume_disk: {
    default: "auto",
    words: "Volume driver: `loop` (ext4 on loop devices, needs root), `sim`, or `auto` (matches the machine driver).",
  },
  volume_pool: {
    default: "auto",
    words:
      "`auto`: volumes are in a file system with reflinks, created in a file if the data directory has none; `plain`: full copies.",
  },
  volume_undelete_hours: {
    default: "24",
    words:
      "Hours during which a deleted volume can be restored; then its data is deleted. Its snapshots stay until they expire.",
  },
  gateway_allow_private: {
    default: "0",
    words: "`1`: connectors with an address chosen by their owner may reach loopback and private networks.",
  },
  ...SPRITE_SETTINGS,
  oidc_issuer_url: {
    default: "",
    words: "Public URL of the OIDC token issuer; default: base URL + `/oidc`.",
  },
  oidc_token_lifetime: { default: "600", words: "Lifetime of an identity token in seconds: 60 to 3600." },
  objects_url: {
    default: "",
    words:
      "Object store for volume snapshots and imported images: `https://host/bucket[/path]` of an S3-compatible server, or `file:///folder`; default: a folder in the data directory.",
  },
  objects_region: { default: "us-east-1", words: "Region of the object store, for request signatures." },
  objects_access_key: { default: "", words: "Access key of the object store." },
  objects_secret_key: { default: "", words: "Secret key of the object store; prefer the environment variable." },
  ...MACHINE_SETTINGS,
  ...LOG_SETTINGS,
  ...PROXY_SETTINGS,
  ...NETWORK_SETTINGS,
  ...FLY_SETTINGS,
  registry_config: {
    default: "",
    words: "Docker config file with registry logins, as `docker login` writes it; used for all organizations.",
  },
  image_quota_gb: {
    default: "100",
    words: "Disk quota in GiB for the images of one organization on a host, uploads included; 0: no limit.",
  },
  registry_allow_private: {
    default: "",
    words:
      "Registries with private addresses that images may be pulled from: `host[:port]`, comma-separated, such as " +
      "`localhost:5000`; list their token services and redirect targets too.",
  },
  webhook_allow_private: {
    default: "",
    words:
      "Hosts with private addresses that webhooks, alerts and log drains of organizations may reach: `host[:port]`, " +
      "comma-separated. Those created with a full-access token may reach any host.",
  },
} as const satisfies Record<string, { default: string; words: string }>;

type Name = keyof typeof SETTINGS;
const NAMES = Object.keys(SETTINGS) as Name[];

export const envName = (name: string): string => `HANGAR_${name.toUpperCase()}`;
export const flagName = (name: string): string => `--${name.replaceAll("_", "-")}`;

export interface Settings extends DatabaseSetting {
  data_dir: string;
  listen: { host: string; port: number };
  base_url: string;
  driver: "auto" | "runc" | "sim";
  suspend: "auto" | "freeze";
  machine_io: IoLimits;
  kept_logs: KeptLogs;
  role: Role;
  host: OwnHostSetting;
  metrics_url: string | undefined;
  metrics_retention_days: number;
  master_key: Buffer | undefined;
  log_level: LogLevel;
  rate_limit: number;
  volume_disk: "auto" | "loop" | "sim";
  volume_pool: "auto" | "plain";
  proxy: ProxySetting;
  network: NetworkSetting;
  fly: FlySetting;
  volume_undelete_hours: number;
  gateway_allow_private: boolean;
  /** Empty: the base URL. */
  sprites_base_url: string;
  sprite_image: string;
  sprite_url_port: number;
  /** Empty: the base URL + /oidc. */
  oidc_issuer_url: string;
  oidc_token_lifetime_s: number;
  /** The `[connectors.<provider>]` tables of the config file. */
  connectors: Record<string, Record<string, string>>;
  objects: ObjectsSetting;
  registry_config: string | undefined;
  registry_allow_private: string[];
  webhook_allow_private: string[];
  image_quota_gb: number;
  /** The `[[hosts]]` tables of the config file; empty is one host in region `local`. */
  hosts: HostSetting[];
  /** Warnings reported once at start. */
  warnings: string[];
}

/** A declared host; `zone` defaults to its id, a size of 0 means unlimited. */
interface HostSetting {
  id: string;
  region: string;
  zone: string;
  cpus: number;
  memory_mb: number;
}

/** Where objects are stored; without a url in the data dir. */
export interface ObjectsSetting {
  url: URL | undefined;
  region: string;
  access_key: string;
  secret_key: string;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

export function readSettings(args: readonly string[], env: Record<string, string | undefined>): Settings {
  const flags = readFlags(args);
  const file =
    flags.get("config") ?? (env["HANGAR_CONFIG"] ? { value: env["HANGAR_CONFIG"], from: "HANGAR_CONFIG" } : undefined);
  const nothing: ConfigFile = { values: new Map(), hosts: [], connectors: {}, warnings: [] };
  const { values: fromFile, hosts, connectors, warnings } = file ? readFile(file.value) : nothing;

  const given = (name: Name): Given => {
    const fromEnv = env[envName(name)];
    if (flags.has(name)) return flags.get(name) as Given;
    if (fromEnv !== undefined && fromEnv !== "") return { value: fromEnv, from: envName(name) };
    return fromFile.get(name) ?? { value: SETTINGS[name].default, from: "default" };
  };

  const listen = address(given("listen"));
  const key = given("master_key");
  return {
    data_dir: resolve(given("data_dir").value),
    listen,
    base_url: origin(given("base_url")),
    driver: oneOf(given("driver"), "driver", ["auto", "runc", "sim"]),
    suspend: oneOf(given("suspend"), "suspend", ["auto", "freeze"]),
    machine_io: machineIo(given),
    kept_logs: keptLogs(given),
    ...databaseSettings(given),
    role: roleOf(given),
    host: ownHost(given),
    metrics_url: given("metrics_url").value || undefined,
    metrics_retention_days: between(given("metrics_retention_days"), "metrics_retention_days", 1, 36_500),
    master_key: key.value === "" ? undefined : masterKey(key),
    log_level: oneOf(given("log_level"), "log_level", ["debug", "info", "warn", "error"]),
    rate_limit: wholeNumber(given("rate_limit"), "rate_limit"),
    volume_disk: oneOf(given("volume_disk"), "volume_disk", ["auto", "loop", "sim"]),
    volume_pool: oneOf(given("volume_pool"), "volume_pool", ["auto", "plain"]),
    proxy: proxySettings(given),
    network: networkSettings(given),
    fly: flySettings(given),
    volume_undelete_hours: wholeNumber(given("volume_undelete_hours"), "volume_undelete_hours"),
    gateway_allow_private: oneOf(given("gateway_allow_private"), "gateway_allow_private", ["0", "1"]) === "1",
    sprites_base_url: origin(given("sprites_base_url")),
    sprite_image: given("sprite_image").value,
    sprite_url_port: between(given("sprite_url_port"), "sprite_url_port", 0, 65_535),
    oidc_issuer_url: issuer(given("oidc_issuer_url")),
    oidc_token_lifetime_s: between(given("oidc_token_lifetime"), "oidc_token_lifetime", 60, 3600),
    connectors,
    objects: {
      url: objectsUrl(given("objects_url")),
      region: given("objects_region").value,
      access_key: given("objects_access_key").value,
      secret_key: given("objects_secret_key").value,
    },
    registry_config: given("registry_config").value || undefined,
    image_quota_gb: wholeNumber(given("image_quota_gb"), "image_quota_gb"),
    registry_allow_private: hostList(given("registry_allow_private"), "localhost:5000"),
    webhook_allow_private: hostList(given("webhook_allow_private"), "hooks.internal:8080"),
    hosts,
    warnings,
  };
}

/** Short aliases of common flags. */
const FLAG_ALIASES: Record<string, Name> = { database: "database_url" };

function readFlags(args: readonly string[]): Map<Name, Given> {
  const flags = [...NAMES.map((name) => name.replaceAll("_", "-")), ...Object.keys(FLAG_ALIASES)];
  const options = Object.fromEntries(flags.map((flag) => [flag, { type: "string" as const }]));
  try {
    const { values } = parseArgs({ args: [...args], options, strict: true, allowPositionals: false });
    return new Map(
      Object.entries(values).map(([flag, value]) => {
        const name = FLAG_ALIASES[flag] ?? (flag.replaceAll("-", "_") as Name);
        return [name, { value: String(value), from: `--${flag}` }];
      }),
    );
  } catch (thrown) {
    throw new SettingsError(`${messageOf(thrown)} (known: ${NAMES.map(flagName).join(" ")})`, { cause: thrown });
  }
}

interface ConfigFile {
  values: Map<Name, Given>;
  hosts: HostSetting[];
  connectors: Record<string, Record<string, string>>;
  warnings: string[];
}

function readFile(path: string): ConfigFile {
  let table: Record<string, unknown>;
  try {
    table = parseToml(readFileSync(path, "utf8"));
  } catch (thrown) {
    throw new SettingsError(`config file ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
  const values = new Map<Name, Given>();
  const warnings: string[] = [];
  const { hosts, connectors, ...single } = table;
  for (const [key, value] of Object.entries(single)) {
    if (!NAMES.includes(key as Name)) {
      const near = closest(key, NAMES);
      warnings.push(`config file ${path}: ${key} is not a setting${near ? `; did you mean ${near}?` : ""}`);
    } else if (typeof value === "object") {
      throw new SettingsError(`config file ${path}: ${key} must be a single value`);
    } else {
      values.set(key as Name, { value: String(value as string | number | boolean), from: `${key} in ${path}` });
    }
  }
  return {
    values,
    hosts: hosts === undefined ? [] : readHosts(hosts, path),
    connectors: connectors === undefined ? {} : readConnectors(connectors, path),
    warnings,
  };
}

function readHosts(tables: unknown, path: string): HostSetting[] {
  const wrong = (problem: string): never => {
    throw new SettingsError(`config file ${path}: ${problem}`);
  };
  if (!Array.isArray(tables)) return wrong("hosts are written as [[hosts]] tables");
  const hosts = tables.map((table: unknown, index) => {
    const { id, region, zone, cpus, memory_mb } = table as Record<string, unknown>;
    const at = `[[hosts]] number ${index + 1}`;
    if (typeof id !== "string" || !/^[0-9a-f]{4}$/.test(id)) return wrong(`${at}: id is four lower-case hex digits`);
    const name = region ?? "local";
    if (typeof name !== "string" || !/^[a-z0-9-]{1,32}$/.test(name))
      return wrong(`${at}: region is lower-case letters, digits and dashes`);
    const size = (value: unknown, what: string): number =>
      value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0)
        ? Number(value ?? 0)
        : wrong(`${at}: ${what} is a whole number`);
    return {
      id,
      region: name,
      zone: typeof zone === "string" && zone !== "" ? zone : id,
      cpus: size(cpus, "cpus"),
      memory_mb: size(memory_mb, "memory_mb"),
    };
  });
  if (new Set(hosts.map((host) => host.id)).size < hosts.length) return wrong("two [[hosts]] have the same id");
  return hosts;
}

/** `[connectors.github]` with string values; the connectors module interprets them. */
function readConnectors(tables: unknown, path: string): Record<string, Record<string, string>> {
  for (const [provider, table] of Object.entries(tables as Record<string, unknown>)) {
    const texts = table !== null && typeof table === "object" ? (Object.values(table) as unknown[]) : [table, 0];
    if (!texts.every((text) => typeof text === "string"))
      throw new SettingsError(`config file ${path}: [connectors.${provider}] holds texts, such as client_id`);
  }
  return tables as Record<string, Record<string, string>>;
}

function origin({ value, from }: Given): string {
  if (value === "") return "";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== "/") {
    throw new SettingsError(`${from}: "${value}" is not an origin such as https://machines.example`);
  }
  return url.origin;
}

/** Kept as written, because tokens contain it verbatim. */
function issuer({ value, from }: Given): string {
  if (value === "") return "";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || value.endsWith("/"))
    throw new SettingsError(`${from}: "${value}" is not an address such as https://machines.example/oidc`);
  return value;
}

function objectsUrl({ value, from }: Given): URL | undefined {
  if (value === "") return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const place = url && (/^https?:$/.test(url.protocol) ? url.pathname.length > 1 : url.protocol === "file:");
  if (!url || !place || url.username !== "" || url.search !== "") {
    throw new SettingsError(`${from}: "${value}" is not a place such as https://s3.example/bucket or file:///backups`);
  }
  return url;
}

function masterKey({ value, from }: Given): Buffer {
  const key = Buffer.from(value, "base64");
  if (key.length !== 32) throw new SettingsError(`${from}: a master key is the base64 of 32 bytes`);
  return key;
}
