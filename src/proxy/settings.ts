import type { BucketsSetting } from "#core/proxy-settings.ts";
import type { TracesSetting } from "#core/trace-settings.ts";

export interface ProxySettings {
  listen_host: string;
  /** Addresses of this host that apps may allocate. */
  addresses: readonly string[];
  domain: string;
  /** Host names of the API, the gateway and the token issuer, which no app may use. */
  own_hosts: readonly string[];
  hostname_proof: "orgs" | "off";
  autostop_idle_s: number;
  /** 0 means one per core. */
  workers: number;
  acme_directory: string;
  /** PEM of the CA of the directory URL, when the system does not trust it. */
  acme_ca: string | undefined;
  /** The program that sets TXT records for dns-01. */
  acme_dns_hook: string | undefined;
  buckets: BucketsSetting | undefined;
  /** Where spans of requests are exported; undefined: requests are not traced. */
  traces: TracesSetting | undefined;
}
