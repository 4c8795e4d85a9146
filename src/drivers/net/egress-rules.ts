/**
 * Egress policies of machines in the firewall. A machine without restrictions is an element of a set; one with a list
 * has a chain of its own, created and removed in one transaction, whose name identifies the policy. Addresses of names
 * are elements with a timeout, added when the platform's DNS server answers the machine.
 */
import type { EgressPolicy, EgressTarget } from "#core/egress-policy.ts";
import { isNamed, targetsOf } from "#core/egress-policy.ts";
import { addressBytes } from "#network/bytes.ts";
import { NETWORK_LIMITS } from "#network/limits.ts";
import { CallError } from "../linux/calls.ts";
import { program } from "../linux/program.ts";
import { digest } from "./names.ts";
import { type Element, renewElement, tellElement } from "./sets.ts";

export interface EgressSender {
  veth: string;
  private_ip: string;
  ipv4: string;
}

/** An address of a DNS name, with its TTL. */
export interface Resolved {
  address: string;
  ttl_s: number;
}

const FAMILIES = [4, 6] as const;
const addressOf = ({ ipv4, private_ip }: EgressSender, family: 4 | 6): string => (family === 4 ? ipv4 : private_ip);
const element = (sender: EgressSender, set: string, family: 4 | 6): Element => ({
  family: "inet",
  set: `${set}${family}`,
  key: [addressBytes(addressOf(sender, family))],
});

/** Prefix of all chains and sets of a machine's policies. */
const ownPrefix = (veth: string): string => (veth === "" ? "e_" : `e_${veth}_`);
const chainOf = (veth: string, policy: EgressPolicy): string =>
  `${ownPrefix(veth)}${digest(policy.allow.join(" ")).slice(0, 12)}`;
const nameSet = (chain: string, index: number, family: 4 | 6): string => `${chain}_${index}_${family}`;

export class EgressRules {
  readonly #table: string;
  /** Machines with an allow list. */
  readonly #listed = new Set<string>();
  /** Read-modify-write changes run one at a time. */
  #work: Promise<unknown> = Promise.resolve();

  constructor(table: string) {
    this.#table = table;
  }

  /** Reads what an earlier process left. */
  async open(): Promise<void> {
    for (const name of (await this.#objects("")).chains) this.#listed.add(name.slice(2).replace(/_[0-9a-f]+$/, ""));
  }

  /** Applies the machine's policy. */
  async apply(sender: EgressSender, policy: EgressPolicy): Promise<void> {
    if (policy.mode === "list") await this.#list(sender, policy);
    for (const family of FAMILIES)
      tellElement(policy.mode === "all" ? "add" : "remove", this.#table, element(sender, "all", family));
    if (policy.mode !== "list") await this.#unlist(sender);
  }

  /** Removes everything of the machine, including counters, because another may get its address. */
  async remove(sender: EgressSender): Promise<void> {
    for (const set of ["all", "denied", "refused", "connections"])
      for (const family of FAMILIES) tellElement("remove", this.#table, element(sender, set, family));
    await this.#unlist(sender);
  }

  /** Opens the addresses of a DNS name for this long, in the policy's entries with that name. */
  admit({ veth }: EgressSender, policy: EgressPolicy, name: string, found: readonly Resolved[]): void {
    const chain = chainOf(veth, policy);
    for (const [index, target] of targetsOf(policy).entries()) {
      if (target.name === undefined || !isNamed(name, target.name)) continue;
      for (const one of found) this.#open(nameSet(chain, index, one.address.includes(":") ? 6 : 4), one);
    }
  }

  #open(set: string, { address, ttl_s }: Resolved): void {
    const timeout_ms = Math.min(Math.max(ttl_s, egress_name_min_s), egress_name_max_s) * 1000;
    try {
      renewElement(this.#table, { family: "inet", set, key: [addressBytes(address)], timeout_ms });
    } catch (thrown) {
      // The set is full, or the policy has changed: the address stays closed.
      if (!(thrown instanceof CallError)) throw thrown;
    }
  }

  async #list(sender: EgressSender, policy: EgressPolicy): Promise<void> {
    const chain = chainOf(sender.veth, policy);
    this.#listed.add(sender.veth);
    await this.#then(async () => {
      const there = await this.#objects(sender.veth);
      if (there.chains.includes(chain)) return;
      const table = `inet ${this.#table}`;
      const moved = FAMILIES.flatMap((family) => {
        const [map, key] = [`${table} lists${family}`, addressOf(sender, family)];
        return [
          ...there.chains.map(() => `delete element ${map} { ${key} }`),
          `add element ${map} { ${key} : jump ${chain} }`,
        ];
      });
      await nft([...chainText(table, chain, targetsOf(policy)), ...moved, ...removal(table, there)]);
    });
  }

  async #unlist(sender: EgressSender): Promise<void> {
    if (!this.#listed.has(sender.veth)) return;
    await this.#then(async () => {
      const there = await this.#objects(sender.veth);
      for (const family of FAMILIES) tellElement("remove", this.#table, element(sender, "lists", family));
      if (there.chains.length > 0) await nft(removal(`inet ${this.#table}`, there));
      this.#listed.delete(sender.veth);
    });
  }

  /** Lists the objects of a machine's policies; of all machines when none is named. */
  async #objects(veth: string): Promise<Objects> {
    const text = await program("nft", ["--json", "--terse", "list", "table", "inet", this.#table]);
    const { nftables } = JSON.parse(text) as { nftables: { chain?: Named; set?: Named }[] };
    const own = (named: Named | undefined): string[] => (named?.name.startsWith(ownPrefix(veth)) ? [named.name] : []);
    return { chains: nftables.flatMap(({ chain }) => own(chain)), sets: nftables.flatMap(({ set }) => own(set)) };
  }

  async #then(work: () => Promise<void>): Promise<void> {
    const done = this.#work.catch(() => {}).then(work);
    this.#work = done;
    await done;
  }
}

interface Named {
  name: string;
}

interface Objects {
  chains: string[];
  sets: string[];
}

const { egress_name_min_s, egress_name_max_s, egress_name_addresses, egress_idle_s } = NETWORK_LIMITS;

const removal = (table: string, { chains, sets }: Objects): string[] => [
  ...chains.flatMap((name) => [`flush chain ${table} ${name}`, `delete chain ${table} ${name}`]),
  ...sets.map((name) => `delete set ${table} ${name}`),
];

const TYPES = { 4: ["ipv4_addr", "ip"], 6: ["ipv6_addr", "ip6"] } as const;

/**
 * The chain of an allow list. Every packet is checked, so that a new policy also applies to open connections. A
 * connection to an address of a name continues after its TTL while it is used.
 */
function chainText(table: string, chain: string, targets: readonly EgressTarget[]): string[] {
  const rule = (text: string): string => `add rule ${table} ${chain} ${text} accept`;
  const used = (family: 4 | 6): string =>
    `{ ${TYPES[family][1]} daddr . meta l4proto . th dport timeout ${egress_idle_s}s }`;
  const text = [`add chain ${table} ${chain}`];
  for (const family of FAMILIES) {
    const [type, ip] = TYPES[family];
    const open = `${chain}_used_${family}`;
    text.push(
      `add set ${table} ${open} { type ${type} . inet_proto . inet_service; size 65535; flags dynamic, timeout; timeout ${egress_idle_s}s; }`,
    );
    for (const [index, target] of targets.entries()) {
      if (target.cidr?.family === family) text.push(rule(`${ip} daddr ${target.cidr.text} ${ports(target)}`));
      if (target.name === undefined) continue;
      const set = nameSet(chain, index, family);
      text.push(`add set ${table} ${set} { type ${type}; size ${egress_name_addresses}; flags timeout; }`);
      text.push(rule(`${ip} daddr @${set} ${ports(target)} update @${open} ${used(family)}`));
    }
    const established = `ct state established ${ip} daddr . meta l4proto . th dport @${open}`;
    text.push(rule(`${established} update @${open} ${used(family)}`));
  }
  return text;
}

function ports({ protocol, ports: range }: EgressTarget): string {
  const port = range ? ` th dport ${range[0]}-${range[1]}` : "";
  if (protocol) return `meta l4proto ${protocol}${port}`;
  return range ? `meta l4proto { tcp, udp }${port}` : "";
}

const nft = (lines: readonly string[]): Promise<string> =>
  program("nft", ["-f", "-"], { input: `${lines.join("\n")}\n` });
