/**
 * What keeps private networks apart, as nftables rules of this installation's own tables:
 *
 * - between two networks nothing passes, and from outside only answers;
 * - to and from other hosts (devices `…t…`, see tunnel.ts) a network reaches itself, and the platform reaches machines;
 * - the host takes from machines DNS queries, calls of the machine API and pings at the gateway address of their own
 *   network, and neighbour discovery; nothing at the gateways of other networks or installations, and nothing from a
 *   machine that is not on its bridge yet;
 * - a machine sends only under its own addresses, and is no router;
 * - machines of one network reach each other over IPv4 by way of the host, which does not tell them a shorter way: it
 *   would outlive the machine that had the address;
 * - what leaves the host leaves under the host's address.
 *
 * Tables are replaced as a whole, so that loading them again after a crash is the same as loading them once.
 */
import { existsSync } from "node:fs";
import { gatewayAddress } from "#machines/names.ts";
import { addressBytes } from "#network/bytes.ts";
import { program } from "../linux/program.ts";
import { devicePrefix, GATEWAY4 } from "./names.ts";
import { deviceKey, type Element, tellElement } from "./sets.ts";

export interface Sender {
  veth: string;
  private_ip: string;
  ipv4: string;
}

export class Firewall {
  readonly #table: string;
  readonly #prefix: string;
  #loading: Promise<void> | undefined;
  /** Why networks are not kept apart by rules. */
  problem: string | undefined;

  constructor(node_id: string) {
    this.#table = `hangar_${node_id}`;
    this.#prefix = devicePrefix(node_id);
  }

  /** Loads the rules once; what is in the sets already stays. */
  async open(): Promise<void> {
    this.#loading ??= this.#load();
    await this.#loading;
  }

  async #load(): Promise<void> {
    if (!existsSync("/usr/sbin/nft") && !existsSync("/sbin/nft")) {
      this.problem = "nft is not installed (apt-get install nftables): organizations' networks are not kept apart";
      return;
    }
    try {
      await nft(rules(this.#table, this.#prefix));
    } catch (thrown) {
      this.problem = `nftables does not work on this host: ${(thrown as Error).message}`;
    }
  }

  /** `address` is any of the network whose bridge it is. */
  async joinBridge(bridge: string, address: string): Promise<void> {
    await this.#elements("add", ofBridge(bridge, address));
  }

  async leaveBridge(bridge: string, address: string): Promise<void> {
    await this.#elements("remove", ofBridge(bridge, address));
  }

  async joinSender(sender: Sender): Promise<void> {
    await this.#elements("add", addresses(sender));
  }

  async leaveSender(sender: Sender): Promise<void> {
    await this.#elements("remove", addresses(sender));
  }

  async remove(): Promise<void> {
    this.#loading = undefined;
    for (const family of ["inet", "bridge"]) await nft(`delete table ${family} ${this.#table}`).catch(() => {});
  }

  async #elements(verb: "add" | "remove", elements: readonly Element[]): Promise<void> {
    await this.open();
    if (this.problem) return;
    for (const element of elements) tellElement(verb, this.#table, element);
  }
}

const ofBridge = (bridge: string, address: string): Element[] => [
  same(bridge),
  near(bridge, address),
  { family: "inet", set: "gateways", key: [deviceKey(bridge), addressBytes(gatewayAddress(address))] },
];

const same = (bridge: string): Element => ({
  family: "inet",
  set: "same",
  key: [deviceKey(bridge), deviceKey(bridge)],
});

/** A bridge and the addresses of its network, wherever in the platform they are. */
function near(bridge: string, address: string): Element {
  const [first, last] = [0, 0xff].map((rest) =>
    addressBytes(address).map((byte, at) => (at < NETWORK_BYTES ? byte : rest)),
  );
  const device = deviceKey(bridge);
  return { family: "inet", set: "near", key: [device, first ?? device], last: [device, last ?? device] };
}

/** Of an address, what says which network it is in. */
const NETWORK_BYTES = 6;

const addresses = ({ veth, private_ip, ipv4 }: Sender): Element[] => [
  { family: "bridge", set: "own6", key: [deviceKey(veth), addressBytes(private_ip)] },
  { family: "bridge", set: "own4", key: [deviceKey(veth), addressBytes(ipv4)] },
];

const nft = (text: string): Promise<string> => program("nft", ["-f", "-"], { input: `${text}\n` });

/** Of IPv4 addresses, what those of the platform's own processes have in common: the last of a block (ipv4-blocks.ts). */
const PROCESSES = "100.64.127.255";

const DNS_PORT = 53;
/** `_api.internal`, see identity/network-door.ts. */
const API_PORT = 4280;

/** The sets are made first and apart, so that what they hold outlives a new load of the rules. */
const rules = (table: string, prefix: string): string => `
add table inet ${table}
add set inet ${table} same { type ifname . ifname; }
add set inet ${table} near { type ifname . ipv6_addr; flags interval; }
add set inet ${table} gateways { type ifname . ipv6_addr; }
add table bridge ${table}
add set bridge ${table} own6 { type ifname . ipv6_addr; }
add set bridge ${table} own4 { type ifname . ipv4_addr; }
flush table inet ${table}
flush table bridge ${table}
table inet ${table} {
  chain between {
    type filter hook forward priority filter; policy accept;
    iifname "${prefix}b*" oifname "${prefix}b*" iifname . oifname != @same drop
    iifname "${prefix}t*" jump arriving
    oifname "${prefix}t*" jump leaving
    oifname "${prefix}b*" iifname != "${prefix}b*" ct state != { established, related } drop
  }
  chain arriving {
    fib saddr . iif oif missing drop
    oifname . ip6 saddr @near accept
    oifname "${prefix}b*" ip6 saddr fdaa:0:0::/48 accept
    oifname "${prefix}b*" ip saddr & ${PROCESSES} == ${PROCESSES} accept
    drop
  }
  chain leaving {
    tcp flags syn tcp option maxseg size set rt mtu
    iifname . ip6 daddr @near accept
    iifname "${prefix}b*" ip6 daddr fdaa:0:0::/48 ct state { established, related } accept
    iifname "${prefix}b*" ip daddr & ${PROCESSES} == ${PROCESSES} ct state { established, related } accept
    drop
  }
  chain host {
    type filter hook input priority filter; policy accept;
    iifname "${prefix}b*" jump machine
    iifname "${prefix}v*" drop
  }
  chain machine {
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    ip6 saddr fe80::/10 drop
    fib saddr . iif oif missing drop
    ct state { established, related } accept
    ip daddr ${GATEWAY4} icmp type echo-request accept
    iifname . ip6 daddr @gateways jump gateway
    drop
  }
  chain gateway {
    icmpv6 type echo-request accept
    udp dport ${DNS_PORT} accept
    tcp dport { ${DNS_PORT}, ${API_PORT} } accept
  }
  chain told {
    type filter hook output priority filter; policy accept;
    oifname "${prefix}b*" icmp type redirect drop
  }
  chain out {
    type nat hook postrouting priority srcnat; policy accept;
    oifname "${prefix}t*" accept
    iifname "${prefix}b*" oifname != "${prefix}b*" masquerade
  }
}
table bridge ${table} {
  chain sent {
    type filter hook prerouting priority -300; policy accept;
    iifname "${prefix}v*" icmpv6 type nd-router-advert drop
    iifname "${prefix}v*" meta protocol ip6 ip6 saddr != { ::, fe80::/10 } iifname . ip6 saddr != @own6 drop
    iifname "${prefix}v*" meta protocol ip iifname . ip saddr != @own4 drop
  }
}`;
