/**
 * The private network on this host: one bridge for each network of an organization, one pair of virtual cables per
 * machine. The host's end of a bridge has the address `gatewayAddress`, where names are answered.
 *
 * runc makes a machine's network namespace inside its user namespace and then runs our hook, at create and inside a
 * resume alike, so the machine's end is wired before any of its sockets exist. The host's end is put on the bridge
 * last, and taken off before a suspend: then nobody gets an answer that a frozen machine did not give.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gatewayAddress, networkPrefix } from "#machines/names.ts";
import { program } from "../linux/program.ts";
import { Firewall } from "./firewall.ts";
import { deviceName, devicePrefix, GATEWAY4, hardware } from "./names.ts";

/** One machine's place in it. */
export interface Cable {
  /** The host's end. */
  veth: string;
  private_ip: string;
  ipv4: string;
  /** Host ids of the machine's groups: who may ping. */
  uid_base: number;
  uid_count: number;
}

export interface NetworkHook {
  path: string;
  args: string[];
  env: string[];
}

const exists = (device: string): boolean => existsSync(`/sys/class/net/${device}`);

/**
 * Runs with runc's word of the container on its input. Everything inside is done by one `ip` in the machine's
 * namespace; the other end of the cable is born in ours, which is that of this shell. The range of who may ping is read in the writer's user
 * namespace, so it is given in the host's numbers.
 */
const HOOK = `read -r state
pid=\${state#*\\"pid\\":}
pid=\${pid%%[,\\}]*}
[ -e /sys/class/net/$1 ] && ip link del $1
nsenter --net=/proc/$pid/ns/net sh -c '
echo "$6 $7" > /proc/sys/net/ipv4/ping_group_range
exec ip -batch - <<END
link add eth0 address $3 type veth peer name $1 address $2 netns $8
link set lo up
link set eth0 up
addr add $4/48 dev eth0 nodad
route add default via $5
addr add $9/32 dev eth0
route add ${GATEWAY4}/32 dev eth0
route add default via ${GATEWAY4} dev eth0
END
' wire "$1" "$2" "$3" "$4" "$5" "$6" "$7" $$ "$8"`;

export class PrivateNetwork {
  readonly firewall: Firewall;
  readonly #node_id: string;
  readonly #onOpen: ((gateway: string) => void) | undefined;
  /** What is being done to a bridge, one after the other. */
  readonly #work = new Map<string, Promise<void>>();
  /** Machines that have a place on a bridge, running or not; the last one takes the bridge away. */
  readonly #members = new Map<string, Set<string>>();

  constructor(node_id: string, onOpen?: (gateway: string) => void) {
    this.#node_id = node_id;
    this.#onOpen = onOpen;
    this.firewall = new Firewall(node_id);
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

  /** The bridge of a machine's network, made when it is not there. */
  async open(veth: string, private_ip: string): Promise<void> {
    this.join(veth, private_ip);
    const bridge = this.bridgeOf(private_ip);
    await this.#then(bridge, async () => {
      if (exists(bridge)) return;
      const kind = ["address", hardware(bridge), "type", "bridge", "mcast_snooping", "0"];
      await program("ip", ["link", "add", bridge, ...kind]);
      const gateway = gatewayAddress(private_ip);
      // No machine tells the host where to send its traffic, and what machines send out is passed on.
      setting(`ipv6/conf/${bridge}/accept_ra`, "0");
      for (const device of [bridge, ...uplinks()]) setting(`ipv4/conf/${device}/forwarding`, "1");
      const lines = [
        `addr replace ${gateway}/48 dev ${bridge} nodad`,
        `addr replace ${GATEWAY4}/32 dev ${bridge} scope link`,
        `link set ${bridge} up`,
      ];
      await program("ip", ["-batch", "-"], { input: `${lines.join("\n")}\n` });
      await this.firewall.joinBridge(bridge);
      this.#onOpen?.(gateway);
    });
  }

  /** The machine is no more. */
  async leave(veth: string, private_ip: string): Promise<void> {
    const bridge = this.bridgeOf(private_ip);
    this.#members.get(bridge)?.delete(veth);
    await this.#then(bridge, async () => {
      if (this.#members.get(bridge)?.size || !exists(bridge)) return;
      this.#members.delete(bridge);
      await program("ip", ["link", "del", bridge]);
      await this.firewall.leaveBridge(bridge);
    });
  }

  /** Takes away every device of this installation. */
  async removeAll(): Promise<void> {
    const mine = readdirSync("/sys/class/net").filter((name) => name.startsWith(devicePrefix(this.#node_id)));
    for (const device of mine) await this.remove(device);
    await this.firewall.remove();
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

  hook({ veth, private_ip, ipv4, uid_base, uid_count }: Cable): NetworkHook {
    const args = [
      veth,
      hardware(`${veth} host`),
      hardware(`${veth} machine`),
      private_ip,
      gatewayAddress(private_ip),
      String(uid_base),
      String(uid_base + uid_count - 1),
      ipv4,
    ];
    return {
      path: "/bin/sh",
      args: ["sh", "-c", HOOK, "hangar-hook", ...args],
      env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
    };
  }

  /** From here on the machine is reached. */
  async attach({ veth, private_ip, ipv4 }: Pick<Cable, "veth" | "private_ip" | "ipv4">): Promise<void> {
    const bridge = this.bridgeOf(private_ip);
    const lines = [`link set ${veth} master ${bridge} up`, `route replace ${ipv4}/32 dev ${bridge}`];
    await program("ip", ["-batch", "-"], { input: `${lines.join("\n")}\n` });
  }

  async detach(veth: string): Promise<void> {
    if (exists(veth)) await program("ip", ["link", "set", veth, "nomaster"]);
  }

  /** Usually gone with the machine's namespace already. */
  async remove(veth: string): Promise<void> {
    if (!exists(veth)) return;
    await program("ip", ["link", "del", veth]).catch((thrown: unknown) => {
      // The kernel clears away a namespace in its own time; it was faster.
      if (exists(veth)) throw thrown;
    });
  }
}

/** Devices by which this host reaches the rest of the world over IPv4. */
function uplinks(): string[] {
  const routes = readFileSync("/proc/net/route", "utf8").split("\n").slice(1);
  const found = routes.flatMap((line) => {
    const [device = "", destination] = line.split("\t");
    return destination === "00000000" ? [device] : [];
  });
  return [...new Set(found)];
}

/** A setting of the kernel's for one device. A host that does not let us has its own reasons. */
function setting(name: string, value: string): void {
  try {
    writeFileSync(`/proc/sys/net/${name}`, value);
  } catch {
    // Outbound traffic is then as the host wants it.
  }
}
