/** Settings of the edge proxy. */
import { isIP } from "node:net";
import { type Given, oneOf, pemFile, program, SettingsError, wholeNumber } from "./setting-values.ts";
import { TRACE_SETTINGS, type TracesSetting, tracesSetting } from "./trace-settings.ts";

export const PROXY_SETTINGS = {
  proxy_listen_host: {
    default: "127.0.0.1",
    words: "Address on which the edge proxy opens the service ports of machines.",
  },
  proxy_addresses: {
    default: "",
    words: "Further addresses of this host, comma-separated, that can be allocated to single apps (`v4`).",
  },
  proxy_workers: { default: "0", words: "Worker threads of the edge proxy; 0: one per core." },
  autostop_idle: { default: "120", words: "Seconds without a request or connection before autostop acts." },
  domain: { default: "localhost", words: "Domain of apps: an app's host name is `<app>.<domain>`." },
  hostname_proof: {
    default: "orgs",
    words:
      "Ownership check of host names: `orgs` (required for tokens of organizations; a full-access token is trusted), or `off`.",
  },
  acme_directory: { default: "", words: "Directory URL of a certificate authority (ACME); none by default." },
  acme_ca: {
    default: "",
    words:
      "PEM file with the root certificate of the authority's own TLS certificate, if the system does not trust it.",
  },
  acme_dns_hook: {
    default: "",
    words:
      "A program that sets and removes TXT records (`present|cleanup <name> <value>`), for certificates of `*.` names by " +
      "dns-01; none by default.",
  },
  statics_url: {
    default: "",
    words:
      "URL of an S3-compatible server, such as `https://s3.example`, whose buckets apps may serve files from " +
      "(`tigris_bucket` in `statics`): every app may serve every bucket that the key below can read.",
  },
  statics_region: { default: "us-east-1", words: "Region of that server, for request signatures." },
  statics_access_key: { default: "", words: "Access key that can read those buckets; empty: anonymous requests." },
  statics_secret_key: { default: "", words: "Secret key for those buckets; prefer the environment variable." },
  ...TRACE_SETTINGS,
} as const satisfies Record<string, { default: string; words: string }>;

export interface ProxySetting {
  listen_host: string;
  addresses: string[];
  /** 0 means one per core. */
  workers: number;
  autostop_idle_s: number;
  domain: string;
  hostname_proof: "orgs" | "off";
  acme_directory: string;
  /** PEM. */
  acme_ca: string | undefined;
  /** Path of a program. */
  acme_dns_hook: string | undefined;
  /** The S3 server of apps' buckets. */
  buckets: BucketsSetting | undefined;
  /** Where the spans of requests are exported; undefined: requests are not traced. */
  traces: TracesSetting | undefined;
}

export interface BucketsSetting {
  origin: string;
  region: string;
  /** Empty: unsigned requests. */
  access_key: string;
  secret_key: string;
  /** The platform's own bucket on that server, if any. */
  closed: string | undefined;
}

export function proxySettings(given: (name: keyof typeof PROXY_SETTINGS) => Given): ProxySetting {
  const host = given("proxy_listen_host");
  if (!isIP(host.value)) throw new SettingsError(`${host.from}: "${host.value}" is not an address such as 127.0.0.1`);
  const list = given("proxy_addresses");
  const addresses = list.value.split(",").flatMap((one) => (one.trim() === "" ? [] : [one.trim()]));
  const wrong = addresses.find((one) => !isIP(one));
  if (wrong !== undefined) throw new SettingsError(`${list.from}: "${wrong}" is not an address such as 203.0.113.7`);
  const domain = given("domain");
  if (!/^[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?$/.test(domain.value)) {
    throw new SettingsError(`${domain.from}: "${domain.value}" is not a domain such as apps.example`);
  }
  const directory = given("acme_directory");
  if (directory.value !== "" && !/^https?:\/\//.test(directory.value)) {
    throw new SettingsError(
      `${directory.from}: "${directory.value}" is not an address such as https://acme.example/directory`,
    );
  }
  const ca = given("acme_ca");
  const hook = given("acme_dns_hook");
  return {
    listen_host: host.value,
    addresses,
    workers: wholeNumber(given("proxy_workers"), "proxy_workers"),
    autostop_idle_s: wholeNumber(given("autostop_idle"), "autostop_idle"),
    domain: domain.value,
    hostname_proof: oneOf(given("hostname_proof"), "hostname_proof", ["orgs", "off"]),
    acme_directory: directory.value,
    acme_ca: ca.value === "" ? undefined : pemFile(ca),
    acme_dns_hook: hook.value === "" ? undefined : program(hook),
    buckets: bucketsSetting(given),
    traces: tracesSetting(given),
  };
}

function bucketsSetting(given: (name: keyof typeof PROXY_SETTINGS) => Given): BucketsSetting | undefined {
  const { value, from } = given("statics_url");
  if (value === "") return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "" || url.username !== "")
    throw new SettingsError(`${from}: "${value}" is not an origin such as https://s3.example`);
  return {
    origin: url.origin,
    region: given("statics_region").value,
    access_key: given("statics_access_key").value,
    secret_key: given("statics_secret_key").value,
    closed: undefined,
  };
}
