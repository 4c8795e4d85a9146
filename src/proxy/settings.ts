import type { BucketsSetting } from "#core/proxy-settings.ts";

export interface ProxySettings {
  listen_host: string;
  /** Addresses of this box that apps may have for themselves. */
  addresses: readonly string[];
  domain: string;
  /** Host names of the API, the gateway and the token issuer: no app may have them. */
  own_hosts: readonly string[];
  hostname_proof: "orgs" | "off";
  autostop_idle_s: number;
  /** 0 is one for each core. */
  workers: number;
  acme_directory: string;
  /** PEM of the authority that vouches for the directory, when the system does not know it. */
  acme_ca: string | undefined;
  /** The program that sets TXT records for dns-01. */
  acme_dns_hook: string | undefined;
  buckets: BucketsSetting | undefined;
}
