/** Loads this installation's nftables rules (firewall-rules.ts), and keeps their sets as machines come and go. */
import { existsSync } from "node:fs";
import type { Cidr } from "#core/cidr.ts";
import { ALL_EGRESS, type EgressPolicy } from "#core/egress-policy.ts";
import { gatewayAddress } from "#machines/names.ts";
import { addressBytes } from "#network/bytes.ts";
import { program } from "../linux/program.ts";
import { EgressRules, type Resolved } from "./egress-rules.ts";
import { firewallRules } from "./firewall-rules.ts";
import { devicePrefix } from "./names.ts";
import { deviceKey, type Element, tellElement } from "./sets.ts";

export const firewallTable = (node_id: string): string => `hangar_${node_id}`;

export interface Sender {
  veth: string;
  private_ip: string;
  ipv4: string;
}

export class Firewall {
  readonly #table: string;
  readonly #prefix: string;
  readonly #opened: readonly Cidr[];
  readonly #egress: EgressRules;
  #loading: Promise<void> | undefined;
  /** Why networks are not isolated by rules. */
  problem: string | undefined;

  /** `opened` are closed ranges that machines may reach. */
  constructor(node_id: string, opened: readonly Cidr[] = []) {
    this.#table = firewallTable(node_id);
    this.#prefix = devicePrefix(node_id);
    this.#opened = opened;
    this.#egress = new EgressRules(this.#table);
  }

  /** Loads the rules once; existing set elements stay. */
  async open(): Promise<void> {
    this.#loading ??= this.#load();
    await this.#loading;
  }

  async #load(): Promise<void> {
    if (!existsSync("/usr/sbin/nft") && !existsSync("/sbin/nft")) {
      this.problem = "nft is not installed (apt-get install nftables): organizations' networks are not isolated";
      return;
    }
    try {
      await nft(firewallRules(this.#table, this.#prefix, this.#opened));
      await this.#egress.open();
    } catch (thrown) {
      this.problem = `nftables does not work on this host: ${(thrown as Error).message}`;
    }
  }

  /** `address` is any address of the bridge's network. */
  async joinBridge(bridge: string, address: string): Promise<void> {
    await this.#elements("add", ofBridge(bridge, address));
  }

  async leaveBridge(bridge: string, address: string): Promise<void> {
    await this.#elements("remove", ofBridge(bridge, address));
  }

  async joinSender(sender: Sender, egress: EgressPolicy = ALL_EGRESS): Promise<void> {
    await this.#elements("add", addresses(sender));
    if (!this.problem) await this.#egress.apply(sender, egress);
  }

  async leaveSender(sender: Sender): Promise<void> {
    await this.#elements("remove", addresses(sender));
    if (!this.problem) await this.#egress.remove(sender);
  }

  /** Opens the addresses of an allowed DNS name to the machine. */
  admit(sender: Sender, egress: EgressPolicy, name: string, found: readonly Resolved[]): void {
    if (!this.problem) this.#egress.admit(sender, egress, name, found);
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

/** A bridge and the prefix of its network on all hosts. */
function near(bridge: string, address: string): Element {
  const [first, last] = [0, 0xff].map((rest) =>
    addressBytes(address).map((byte, at) => (at < NETWORK_BYTES ? byte : rest)),
  );
  const device = deviceKey(bridge);
  return { family: "inet", set: "near", key: [device, first ?? device], last: [device, last ?? device] };
}

/** Length of the network prefix in bytes. */
const NETWORK_BYTES = 6;

const addresses = ({ veth, private_ip, ipv4 }: Sender): Element[] => [
  { family: "bridge", set: "own6", key: [deviceKey(veth), addressBytes(private_ip)] },
  { family: "bridge", set: "own4", key: [deviceKey(veth), addressBytes(ipv4)] },
];

const nft = (text: string): Promise<string> => program("nft", ["-f", "-"], { input: `${text}\n` });
