/**
 * The private network on this host: one bridge for each network of an organization, one veth pair per machine. The
 * host's end of a bridge has the address `gatewayAddress`, where DNS queries are answered.
 *
 * runc makes a machine's network namespace inside its user namespace and then runs our hook, at create and inside a
 * resume alike, so the machine's end is connected before any of its sockets exist. The host's end is attached to the
 * bridge last, and detached before a suspend, so that the host answers no peer in place of the frozen machine.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Cidr } from "#core/cidr.ts";
import { gatewayAddress, networkPrefix } from "#machines/names.ts";
import { type Message, packed } from "../linux/netlink.ts";
import { Firewall } from "./firewall.ts";
import { Forwarding } from "./forwarding.ts";
import { setting } from "./kernel-settings.ts";
import {
  addAddress,
  addBridge,
  addCable,
  addRoute,
  deleteLink,
  numberOf,
  setMaster,
  setUp,
  tellLinks,
} from "./links.ts";
import { deviceName, devicePrefix, GATEWAY4, hardware } from "./names.ts";
import { removeTunnelRules } from "./tunnel-rules.ts";

/** One machine's connection to the network. */
export interface Cable {
  /** The host's end of the veth pair. */
  veth: string;
  private_ip: string;
  ipv4: string;
  /** First host id of the machine's groups, which may ping. */
  uid_base: number;
  uid_count: number;
}

export interface NetworkHook {
  path: string;
  args: string[];
  env: string[];
}

const exists = (device: string): boolean => existsSync(`/sys/class/net/${device}`);

/** Sends netlink messages in the machine's network namespace; see native/hook.c. */
const HOOK = join(import.meta.dirname, "../runtime/runc/native", process.arch, "hook");
const FORWARDING = "3";
/** About half a second; then the machine becomes reachable a little later. */
const FORWARDS_TRIES = 400;
/** Descriptor of the host's network namespace in the hook. */
const HOST_NETNS = 100;
/** Device indexes in a machine; the kernel may have assigned low ones itself. */
const INSIDE = { lo: 1, eth0: 1000 };

export class PrivateNetwork {
  readonly firewall: Firewall;
  readonly #forwarding = new Forwarding();
  readonly #node_id: string;
  readonly #routed: boolean;
  /** Pending work by bridge, one at a time. */
  readonly #work = new Map<string, Promise<void>>();
  /** Machines of a bridge, running or not; the last one removes the bridge. */
  readonly #members = new Map<string, Set<string>>();

  /** `routed`: networks span hosts, so only local addresses are reached directly. */
  constructor(node_id: string, { routed, egress_allow }: { routed: boolean; egress_allow?: readonly Cidr[] }) {
    this.#node_id = node_id;
    this.#routed = routed;
    this.firewall = new Firewall(node_id, egress_allow);
  }

  bridgeOf(private_ip: string): string {
    return deviceName(this.#node_id, "b", networkPrefix(private_ip));
  }

  /** A machine belongs to its network from its first start until it is destroyed. */
  join(veth: string, private_ip: string): void {
    const bridge = this.bridgeOf(private_ip);
    const members = this.#members.get(bridge) ?? new Set();
    this.#members.set(bridge, members.add(veth));
  }

  /** Opens the bridge of a machine's network, creating it if missing. */
  async open(veth: string, private_ip: string): Promise<void> {
    this.join(veth, private_ip);
    const bridge = this.bridgeOf(private_ip);
    await this.#then(bridge, async () => {
      if (exists(bridge)) return;
      tellLinks([addBridge(bridge, hardware(bridge))]);
      const gateway = gatewayAddress(private_ip);
      // The host ignores router advertisements of machines, and forwards their traffic.
      setting(`ipv6/conf/${bridge}/accept_ra`, "0");
      this.#forwarding.begin(bridge);
      if (this.#routed) this.#forwarding.passOn(bridge);
      const device = numberOf(bridge) ?? 0;
      tellLinks([
        addAddress({ net: `${gateway}/48`, device }),
        addAddress({ net: `${GATEWAY4}/32`, device }, "link"),
        setUp(bridge),
      ]);
      await this.firewall.joinBridge(bridge, gateway);
    });
  }

  /** The machine was destroyed. */
  async leave(veth: string, private_ip: string): Promise<void> {
    const bridge = this.bridgeOf(private_ip);
    this.#members.get(bridge)?.delete(veth);
    await this.#then(bridge, async () => {
      if (this.#members.get(bridge)?.size || !exists(bridge)) return;
      this.#members.delete(bridge);
      tellLinks([deleteLink(bridge)]);
      await this.firewall.leaveBridge(bridge, private_ip);
    });
  }

  /** Removes every device of this installation, including unknown ones. */
  async removeAll(): Promise<void> {
    const mine = readdirSync("/sys/class/net").filter((name) => name.startsWith(devicePrefix(this.#node_id)));
    for (const device of mine) await this.remove(device);
    await this.firewall.remove();
    await removeTunnelRules(this.#node_id);
    this.#forwarding.end();
    this.#members.clear();
  }

  async #then(bridge: string, work: () => Promise<void>): Promise<void> {
    const done = (this.#work.get(bridge) ?? Promise.resolve()).catch(() => {}).then(work);
    this.#work.set(bridge, done);
    try {
      await done;
    } finally {
      if (this.#work.get(bridge) === done) this.#work.delete(bridge);
    }
  }

  /** Instructions for the hook: a veth pair, its addresses and routes. */
  hook({ veth, private_ip, ipv4, uid_base, uid_count }: Cable): NetworkHook {
    const device = INSIDE.eth0;
    const messages = [
      addCable(
        { name: "eth0", address: hardware(`${veth} machine`), number: device },
        { name: veth, address: hardware(`${veth} host`), netns: HOST_NETNS },
      ),
      setUp(INSIDE.lo),
      setUp(device),
      ...this.#inside(private_ip),
      addAddress({ net: `${ipv4}/32`, device }),
      addRoute(`${GATEWAY4}/32`, { device }),
      addRoute(undefined, { gateway: GATEWAY4, device }),
    ];
    // The range is read in the writer's user namespace, so host ids are given.
    const range = `${uid_base} ${uid_base + uid_count - 1}`;
    // The kernel notices the carrier late, and a bridge drops packets before that: so the link is set up now.
    const encoded = [messages, [setUp(veth)]].map((list) => packed(list).toString("hex"));
    return { path: HOOK, args: ["hook", range, ...encoded], env: [] };
  }

  /** A machine's address, and what it reaches on-link: its whole network, or the local part. */
  #inside(private_ip: string): Message[] {
    const device = INSIDE.eth0;
    const gateway = gatewayAddress(private_ip);
    return [
      addAddress({ net: `${private_ip}/${this.#routed ? 64 : 48}`, device }),
      ...(this.#routed ? [addRoute(`${gateway}/128`, { device })] : []),
      addRoute(undefined, { gateway, device }),
    ];
  }

  /** Makes the machine reachable. */
  async attach({ veth, private_ip, ipv4 }: Pick<Cable, "veth" | "private_ip" | "ipv4">): Promise<void> {
    const bridge = this.bridgeOf(private_ip);
    const device = numberOf(bridge);
    if (device === undefined) throw new Error(`the bridge ${bridge} of this network does not exist any more`);
    tellLinks([setMaster(veth, device), addRoute(`${ipv4}/32`, { device })]);
    for (let tries = 0; !forwards(veth, bridge) && tries < FORWARDS_TRIES; tries++) await pause(1);
  }

  async detach(veth: string): Promise<void> {
    if (exists(veth)) tellLinks([setMaster(veth, undefined)]);
  }

  /** Usually already removed with the machine's namespace. */
  async remove(veth: string): Promise<void> {
    if (!exists(veth)) return;
    try {
      tellLinks([deleteLink(veth)]);
    } catch (thrown) {
      // Removed by the kernel meanwhile.
      if (exists(veth)) throw thrown;
    }
  }
}

/**
 * Whether the bridge forwards to this port. The kernel detects carrier asynchronously; earlier packets are dropped, and
 * retransmitted a second later.
 */
function forwards(veth: string, bridge: string): boolean {
  return about(veth, "brport/state") === FORWARDING && about(bridge, "operstate") === "up";
}

function about(device: string, what: string): string | undefined {
  try {
    return readFileSync(`/sys/class/net/${device}/${what}`, "utf8").trim();
  } catch {
    return undefined;
  }
}
