/** Settings of the machines' network. */
import { isIP } from "node:net";
import { type Cidr, parseCidr } from "./cidr.ts";
import { address, type Given, hostList, SettingsError } from "./setting-values.ts";

export const NETWORK_SETTINGS = {
  egress_allow: {
    default: "",
    words:
      "Private and link-local ranges that machines may reach, comma-separated, such as `10.1.0.0/16,192.168.7.5`; " +
      "default: none. docs/networking.md",
  },
  dns_servers: {
    default: "",
    words:
      "Upstream DNS servers for public names, comma-separated, such as `9.9.9.9` or `[2620:fe::fe]:53`; default: those of /etc/resolv.conf.",
  },
  git_allow_private: {
    default: "",
    words:
      "Hosts with private addresses that repositories of Git webhooks may be on, also without TLS: `host[:port]`, " +
      "comma-separated, such as `gitea.internal:3000`.",
  },
} as const satisfies Record<string, { default: string; words: string }>;

export interface NetworkSetting {
  git_allow_private: string[];
  egress_allow: Cidr[];
  dns_servers: { host: string; port: number }[] | undefined;
}

export function networkSettings(given: (name: keyof typeof NETWORK_SETTINGS) => Given): NetworkSetting {
  const servers = given("dns_servers");
  return {
    git_allow_private: hostList(given("git_allow_private"), "gitea.internal:3000"),
    egress_allow: listOf(given("egress_allow"), ({ value, from }) => {
      const cidr = parseCidr(value);
      if (!cidr) throw new SettingsError(`${from}: "${value}" is not a range such as 10.1.0.0/16 or fd00:1::/32`);
      return cidr;
    }),
    dns_servers: servers.value === "" ? undefined : listOf(servers, nameServer),
  };
}

function nameServer({ value, from }: Given): { host: string; port: number } {
  const server = isIP(value) ? { host: value, port: 53 } : address({ value, from });
  if (!isIP(server.host)) throw new SettingsError(`${from}: "${value}" is not an address such as 9.9.9.9`);
  return server;
}

const listOf = <T>({ value, from }: Given, read: (given: Given) => T): T[] =>
  value.split(",").flatMap((one) => (one.trim() === "" ? [] : [read({ value: one.trim(), from })]));
