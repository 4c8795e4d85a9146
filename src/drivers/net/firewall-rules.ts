/**
 * The nftables rules that isolate private networks, in this installation's own tables:
 *
 * - between two networks nothing passes, and from outside only answers;
 * - to and from other hosts (devices `…t…`, see tunnel.ts) a network reaches itself, and the platform reaches machines;
 * - the host takes from machines DNS queries, calls of the machine API and pings at the gateway address of their own
 *   network, and neighbour discovery; nothing at the gateways of other networks or installations, and nothing from a
 *   machine that is not on its bridge yet;
 * - a machine sends only under its own addresses, and is no router;
 * - machines of one network reach each other over IPv4 through the host, which sends no ICMP redirects: a redirect
 *   would outlive the machine that had the address;
 * - what leaves the host leaves under the host's address, goes to no range that is closed (core/egress.ts), and only
 *   where the machine's policy allows it (egress-rules.ts): a machine without one reaches nothing;
 * - a machine has no more tracked connections than its limit.
 *
 * Chains are flushed and filled in one transaction, so that loading them again after a crash is the same as loading
 * them once; sets, and the chains of machines' policies, keep what they hold.
 */
import type { Cidr } from "#core/cidr.ts";
import { CLOSED_RANGES } from "#core/egress.ts";
import { NETWORK_LIMITS } from "#network/limits.ts";
import { GATEWAY4 } from "./names.ts";

/** The last address of each IPv4 block belongs to the platform's own process (ipv4-blocks.ts). */
const PROCESSES = "100.64.127.255";
const DNS_PORT = 53;
/** `_api.internal`, see identity/machine-api-listener.ts. */
const API_PORT = 4280;

interface Chain {
  /** Netfilter hook; without it, only other chains jump here. */
  hook?: string;
  rules: readonly string[];
}

const FAMILIES = [
  { v: 4, type: "ipv4_addr", ip: "ip" },
  { v: 6, type: "ipv6_addr", ip: "ip6" },
] as const;

const each = (text: (family: (typeof FAMILIES)[number]) => string): string[] => FAMILIES.map(text);

/** Sets that are filled as machines start and stop, or by packets. */
const SETS: Record<string, string> = {
  same: "type ifname . ifname;",
  near: "type ifname . ipv6_addr; flags interval;",
  gateways: "type ifname . ipv6_addr;",
  ...Object.fromEntries(
    FAMILIES.flatMap(({ v, type }) => [
      [`all${v}`, `type ${type};`],
      // Ranges closed to all machines, and those that the operator opened.
      [`closed${v}`, `type ${type}; flags interval; auto-merge;`],
      [`opened${v}`, `type ${type}; flags interval; auto-merge;`],
      [`connections${v}`, `type ${type}; size 65535; flags dynamic;`],
      // By machine address: packets denied by egress rules and by the connection limit.
      [`denied${v}`, `type ${type}; size 65535; flags dynamic; counter;`],
      [`refused${v}`, `type ${type}; size 65535; flags dynamic; counter;`],
    ]),
  ),
};

/** Limits the new connections of a machine. */
const connectionChains = (prefix: string): Record<string, Chain> => ({
  begin: {
    hook: "filter hook prerouting priority filter",
    rules: [`iifname "${prefix}b*" ct state new jump connections`],
  },
  connections: {
    rules: each(
      ({ v, ip }) =>
        `meta nfproto ipv${v} add @connections${v} { ${ip} saddr ct count over ${NETWORK_LIMITS.connections_per_machine} } goto refused`,
    ),
  },
  refused: { rules: [...each(({ v, ip }) => `meta nfproto ipv${v} update @refused${v} { ${ip} saddr }`), "drop"] },
});

/** Traffic that leaves the private networks. */
const EGRESS_CHAINS: Record<string, Chain> = {
  egress: {
    rules: [
      ...each(({ v, ip }) => `${ip} daddr @closed${v} ${ip} daddr != @opened${v} goto denied`),
      ...each(({ v, ip }) => `${ip} saddr @all${v} accept`),
      ...each(({ v, ip }) => `${ip} saddr vmap @lists${v}`),
      "goto denied",
    ],
  },
  // Rejects, so that programs fail at once, and connections that a new policy forbids end.
  denied: {
    rules: [
      ...each(({ v, ip }) => `meta nfproto ipv${v} update @denied${v} { ${ip} saddr }`),
      "ct state established meta l4proto tcp reject with tcp reset",
      "reject with icmpx admin-prohibited",
    ],
  },
};

/** Traffic forwarded between machines, other hosts and the outside. */
const forwardChains = (prefix: string): Record<string, Chain> => ({
  between: {
    hook: "filter hook forward priority filter",
    rules: [
      `iifname "${prefix}b*" oifname "${prefix}b*" iifname . oifname != @same drop`,
      `iifname "${prefix}t*" jump arriving`,
      `oifname "${prefix}t*" jump leaving`,
      `oifname "${prefix}b*" iifname != "${prefix}b*" ct state != { established, related } drop`,
      `iifname "${prefix}b*" oifname != "${prefix}b*" jump egress`,
    ],
  },
  arriving: {
    rules: [
      "fib saddr . iif oif missing drop",
      "oifname . ip6 saddr @near accept",
      `oifname "${prefix}b*" ip6 saddr fdaa:0:0::/48 accept`,
      `oifname "${prefix}b*" ip saddr & ${PROCESSES} == ${PROCESSES} accept`,
      "drop",
    ],
  },
  leaving: {
    rules: [
      "tcp flags syn tcp option maxseg size set rt mtu",
      "iifname . ip6 daddr @near accept",
      `iifname "${prefix}b*" ip6 daddr fdaa:0:0::/48 ct state { established, related } accept`,
      `iifname "${prefix}b*" ip daddr & ${PROCESSES} == ${PROCESSES} ct state { established, related } accept`,
      "drop",
    ],
  },
});

/** Traffic from machines to the host itself, and from the host. */
const hostChains = (prefix: string): Record<string, Chain> => ({
  host: {
    hook: "filter hook input priority filter",
    rules: [`iifname "${prefix}b*" jump machine`, `iifname "${prefix}v*" drop`],
  },
  machine: {
    rules: [
      "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
      "ip6 saddr fe80::/10 drop",
      "fib saddr . iif oif missing drop",
      "ct state { established, related } accept",
      `ip daddr ${GATEWAY4} icmp type echo-request accept`,
      "iifname . ip6 daddr @gateways jump gateway",
      "drop",
    ],
  },
  gateway: {
    rules: [
      "icmpv6 type echo-request accept",
      `udp dport ${DNS_PORT} accept`,
      `tcp dport { ${DNS_PORT}, ${API_PORT} } accept`,
    ],
  },
  told: {
    hook: "filter hook output priority filter",
    rules: [`oifname "${prefix}b*" icmp type redirect drop`],
  },
  out: {
    hook: "nat hook postrouting priority srcnat",
    rules: [`oifname "${prefix}t*" accept`, `iifname "${prefix}b*" oifname != "${prefix}b*" masquerade`],
  },
});

const bridgeChains = (prefix: string): Record<string, Chain> => ({
  sent: {
    hook: "filter hook prerouting priority -300",
    rules: [
      `iifname "${prefix}v*" icmpv6 type nd-router-advert drop`,
      `iifname "${prefix}v*" meta protocol ip6 ip6 saddr != { ::, fe80::/10 } iifname . ip6 saddr != @own6 drop`,
      `iifname "${prefix}v*" meta protocol ip iifname . ip saddr != @own4 drop`,
    ],
  },
});

const BRIDGE_SETS = { own6: "type ifname . ipv6_addr;", own4: "type ifname . ipv4_addr;" };

function filled(table: string, all: Record<string, Chain>): string[] {
  const entries = Object.entries(all);
  return [
    ...entries.map(
      ([name, { hook }]) => `add chain ${table} ${name}${hook ? ` { type ${hook}; policy accept; }` : ""}`,
    ),
    ...entries.map(([name]) => `flush chain ${table} ${name}`),
    ...entries.flatMap(([name, { rules }]) => rules.map((rule) => `add rule ${table} ${name} ${rule}`)),
  ];
}

/** Sets the elements of a set to exactly these ranges. */
function ranges(table: string, set: string, cidrs: readonly Cidr[]): string[] {
  const list = cidrs.map(({ text }) => text).join(", ");
  return [`flush set ${table} ${set}`, ...(list === "" ? [] : [`add element ${table} ${set} { ${list} }`])];
}

/** Input of `nft -f`; `opened` are closed ranges that machines may reach. */
export function firewallRules(name: string, prefix: string, opened: readonly Cidr[]): string {
  const [inet, bridge] = [`inet ${name}`, `bridge ${name}`];
  const sets = (table: string, all: Record<string, string>): string[] =>
    Object.entries(all).map(([set, kind]) => `add set ${table} ${set} { ${kind} }`);
  return [
    `add table ${inet}`,
    ...sets(inet, SETS),
    ...each(({ v, type }) => `add map ${inet} lists${v} { type ${type} : verdict; }`),
    ...FAMILIES.flatMap(({ v }) => [
      ...ranges(
        inet,
        `closed${v}`,
        CLOSED_RANGES.filter(({ family }) => family === v),
      ),
      ...ranges(
        inet,
        `opened${v}`,
        opened.filter(({ family }) => family === v),
      ),
    ]),
    ...filled(inet, {
      ...connectionChains(prefix),
      ...EGRESS_CHAINS,
      ...forwardChains(prefix),
      ...hostChains(prefix),
    }),
    `add table ${bridge}`,
    ...sets(bridge, BRIDGE_SETS),
    ...filled(bridge, bridgeChains(prefix)),
  ].join("\n");
}
