/**
 * The private network on this host: one bridge for each network of an organization, one pair of virtual cables per
 * machine. The host's end of a bridge has the address `gatewayAddress`, where names are answered.
 *
 * runc makes a machine's network namespace inside its user namespace and then runs our hook, at create and inside a
 * resume alike, so the machine's end is wired before any of its sockets exist. The host's end is put on the bridge
 * last, and taken off before a suspend: then nobody gets an answer that a frozen machine did not give.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { gatewayAddress, networkPrefix } from "#machines/names.ts";
import { program } from "../linux/program.ts";

/** One machine's place in it. */
export interface Cable {
  /** The host's end. */
  veth: string;
  private_ip: string;
  /** Host ids of the machine's groups: who may ping. */
  uid_base: number;
  uid_count: number;
}

export interface NetworkHook {
  path: string;
  args: string[];
  env: string[];
}

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

/**
 * A network device's name has fifteen characters: `h`, five of this installation, what it is, eight of whose it is. So
 * everything of an installation can be found by how its name begins.
 */
export const deviceName = (node_id: string, kind: "b" | "v", whose: string): string =>
  `${devicePrefix(node_id)}${kind}${digest(whose).slice(0, 8)}`;
export const devicePrefix = (node_id: string): string => `h${node_id.slice(0, 5)}`;

/** An address of the hardware, made from a name: the same after every start, or neighbours would remember the wrong one. */
const hardware = (name: string): string => `02:${(digest(name).slice(0, 10).match(/../g) ?? []).join(":")}`;

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
END
' wire "$@" $$`;

export class PrivateNetwork {
  readonly #node_id: string;
  readonly #onOpen: ((gateway: string) => void) | undefined;
  /** What is being done to a bridge, one after the other. */
  readonly #work = new Map<string, Promise<void>>();
  /** Machines that have a place on a bridge, running or not; the last one takes the bridge away. */
  readonly #members = new Map<string, Set<string>>();

  constructor(node_id: string, onOpen?: (gateway: string) => void) {
    this.#node_id = node_id;
    this.#onOpen = onOpen;
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
      const lines = [`addr replace ${gateway}/48 dev ${bridge} nodad`, `link set ${bridge} up`];
      await program("ip", ["-batch", "-"], { input: `${lines.join("\n")}\n` });
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
    });
  }

  /** Takes away every device of this installation. */
  async removeAll(): Promise<void> {
    const mine = readdirSync("/sys/class/net").filter((name) => name.startsWith(devicePrefix(this.#node_id)));
    for (const device of mine) await this.remove(device);
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

  hook({ veth, private_ip, uid_base, uid_count }: Cable): NetworkHook {
    const args = [
      veth,
      hardware(`${veth} host`),
      hardware(`${veth} machine`),
      private_ip,
      gatewayAddress(private_ip),
      String(uid_base),
      String(uid_base + uid_count - 1),
    ];
    return {
      path: "/bin/sh",
      args: ["sh", "-c", HOOK, "hangar-hook", ...args],
      env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],
    };
  }

  /** From here on the machine is reached. */
  async attach(veth: string, private_ip: string): Promise<void> {
    await program("ip", ["link", "set", veth, "master", this.bridgeOf(private_ip), "up"]);
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
