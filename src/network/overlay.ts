/**
 * The overlay network between hosts. A machine's address contains its network and host (`privateAddress`), so routes
 * are derived from addresses: one route per network and remote host that has a machine of it, to the process of that
 * host. Processes publish their underlay addresses in the store.
 */
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { hostPrefix } from "#machines/names.ts";
import { groupsText } from "./bytes.ts";
import type { Directory, Entry } from "./directory.ts";
import { blockNet } from "./ipv4-blocks.ts";
import { NETWORK_LIMITS } from "./limits.ts";

/** A process that takes part in the private network. */
export interface Peer {
  node_id: string;
  /** Its host's underlay address. */
  underlay: string;
  /** Last heartbeat, by its own wall clock. */
  seen_at: number;
  /** Its machines' IPv4 block; null when it has none. */
  block: number | null;
}

/** Stores peers; decides nothing. Implemented in stores/, tested by `peer-store.suite.ts`. */
export interface PeerStore {
  peers(): Promise<Peer[]>;
  /** Publishes a peer's address; peers without a heartbeat since `forget_before` are deleted. */
  announce(peer: Omit<Peer, "block">, forget_before: number): Promise<void>;
  /** Returns the process's block if it is one of `blocks`, else assigns the first free one; undefined when none is. */
  takeBlock(node_id: string, blocks: readonly number[]): Promise<number | undefined>;
}

/** Another process and the networks behind it. */
export interface RemotePeer {
  node_id: string;
  underlay: string;
  /** Its own address in the private network. */
  address: string;
  /** Prefixes of its machines, such as `fdaa:1:2:3::/64`. */
  nets: readonly string[];
  /** Their IPv4 block, such as `100.64.128.0/17`; undefined when it is not routed. */
  net4: string | undefined;
}

/** Carries packets to other hosts. Implemented in drivers/net. */
export interface Tunnel {
  /** Sets the routes to exactly these. Idempotent; a partial failure is corrected by the next call. */
  keep(ends: readonly RemotePeer[]): Promise<void>;
  /** Removes it completely. */
  remove(): Promise<void>;
}

/**
 * A process's own address in the private network, derived from its data dir, in network 0, which no organization has.
 * Source of the platform's own traffic to machines on other hosts.
 */
export const platformAddress = (node_id: string): string => `fdaa:0:0:1:${groupsText(node_id)}`;

interface OverlayParts {
  node_id: string;
  underlay: string;
  /** The hosts of this process, whose machines are local. */
  own: readonly string[];
  directory: Directory;
  store: PeerStore;
  /** Which process each host is. */
  hosts(): Promise<readonly { id: string; node_id: string }[]>;
  tunnel: Tunnel;
  notifier: Notifier;
  clock: Clock;
  log: Log;
}

/** Maintains the routes to all other hosts, derived from the store and checked regularly. */
export class OverlayNetwork {
  readonly #parts: OverlayParts;
  readonly #closing = new AbortController();
  readonly #ends: (() => void)[] = [];
  /** Known networks and hosts, routed or not yet routable. */
  #known = new Set<string>();
  #again = Promise.withResolvers<void>();
  #announced = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;

  constructor(parts: OverlayParts) {
    this.#parts = parts;
    parts.directory.onChange((app_id) => {
      if (this.#remote(parts.directory.machines(app_id)).some(({ net }) => !this.#known.has(net))) this.#wake();
    });
  }

  /** Fails when this host does not support it. The directory is already loaded. */
  async start(): Promise<void> {
    const { notifier, node_id } = this.#parts;
    this.#ends.push(
      notifier.listen("network", () => this.#wake()),
      notifier.listen("hosts", () => this.#wake()),
      notifier.onGap(() => this.#wake()),
    );
    await this.look();
    notifier.send("network", node_id);
    this.#running = this.#run();
  }

  /** The routes stay, because machines keep running. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const end of this.#ends.splice(0)) end();
    await this.#running;
  }

  /** Publishes our address, and updates the routes. */
  async look(): Promise<void> {
    const { store, hosts, tunnel, directory, node_id } = this.#parts;
    await this.#announce();
    const [peers, all] = await Promise.all([store.peers(), hosts()]);
    const nodes = new Map(all.map((host) => [host.id, host.node_id]));
    const remote = this.#remote(directory.all());
    const nets = Map.groupBy(remote, ({ host_id }) => nodes.get(host_id) ?? "");
    const ends = peers.filter((peer) => peer.node_id !== node_id);
    await tunnel.keep(
      ends.map((peer) => ({
        node_id: peer.node_id,
        underlay: peer.underlay,
        address: platformAddress(peer.node_id),
        nets: [...new Set((nets.get(peer.node_id) ?? []).map(({ net }) => net))].sort(),
        net4: peer.block === null ? undefined : blockNet(peer.block),
      })),
    );
    this.#known = new Set(remote.map(({ net }) => net));
  }

  async #announce(): Promise<void> {
    const { store, node_id, underlay, clock } = this.#parts;
    if (clock.monotonic() - this.#announced < NETWORK_LIMITS.peer_beat_ms) return;
    const seen_at = clock.now();
    await store.announce({ node_id, underlay, seen_at }, seen_at - NETWORK_LIMITS.peer_forget_ms);
    this.#announced = clock.monotonic();
  }

  #remote(machines: Iterable<Entry>): { net: string; host_id: string }[] {
    return [...machines]
      .filter(({ host_id }) => !this.#parts.own.includes(host_id))
      .map(({ private_ip, host_id }) => ({ net: hostPrefix(private_ip), host_id }));
  }

  #wake(): void {
    this.#again.resolve();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const nap = new AbortController();
      const either = AbortSignal.any([signal, nap.signal]);
      const late = clock.sleep(NETWORK_LIMITS.peer_beat_ms, either).catch(() => {});
      await Promise.race([late, this.#again.promise]);
      nap.abort();
      // Many machines that start together are one change.
      await clock.sleep(NETWORK_LIMITS.overlay_gather_ms, signal).catch(() => {});
      if (signal.aborted) return;
      this.#again = Promise.withResolvers();
      await this.look().catch((error: unknown) =>
        log.warn({ error }, "the routes to other hosts could not be updated"),
      );
    }
  }
}
