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

/** A process of the platform that takes part in the private network. */
export interface Peer {
  node_id: string;
  /** The address of its box that other boxes send to. */
  underlay: string;
  /** When it was last heard of, by its own wall clock. */
  seen_at: number;
  /** The block of its machines' IPv4 addresses; null when it has none. */
  block: number | null;
}

/** Keeps and finds peers; decides nothing. Implemented in stores/, examined by `peer-store.suite.ts`. */
export interface PeerStore {
  peers(): Promise<Peer[]>;
  /** A peer is where it says it is; those that were not heard of since `forget_before` are forgotten. */
  announce(peer: Omit<Peer, "block">, forget_before: number): Promise<void>;
  /** The block that a process has, or the first of `blocks` that nobody has and that is its own from now on. */
  takeBlock(node_id: string, blocks: readonly number[]): Promise<number | undefined>;
}

/** Another process, and what is behind it. */
export interface RemotePeer {
  node_id: string;
  underlay: string;
  /** Its own address in the private network. */
  address: string;
  /** What machines on it have, such as `fdaa:1:2:3::/64`. */
  nets: readonly string[];
  /** The block of their IPv4 addresses, such as `100.64.128.0/17`; undefined when there is no route to them. */
  net4: string | undefined;
}

/** What carries packets to other hosts. Implemented in drivers/net. */
export interface Tunnel {
  /** The ways are exactly these. May be repeated; one that failed halfway is made good by the next. */
  keep(ends: readonly RemotePeer[]): Promise<void>;
  /** Nothing of it is left. */
  remove(): Promise<void>;
}

/**
 * A process's own address in the private network: in network 0, which no organization has, and made from its data dir.
 * What the platform itself sends to machines on other hosts comes from it.
 */
export const platformAddress = (node_id: string): string => `fdaa:0:0:1:${groupsText(node_id)}`;

interface OverlayParts {
  node_id: string;
  underlay: string;
  /** The hosts that this process is: their machines are here. */
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

/** Keeps the ways to all other hosts: what they are follows from the store, and is looked at again and again. */
export class OverlayNetwork {
  readonly #parts: OverlayParts;
  readonly #closing = new AbortController();
  readonly #ends: (() => void)[] = [];
  /** Networks and hosts that there is a way to, or that no way can be had to yet. */
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

  /** Fails when this box cannot have it. The directory is there already. */
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

  /** The ways stay: machines run on without us. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const end of this.#ends.splice(0)) end();
    await this.#running;
  }

  /** Says where we are, and makes the ways what they are to be. */
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
      await clock.sleep(NETWORK_LIMITS.fabric_gather_ms, signal).catch(() => {});
      if (signal.aborted) return;
      this.#again = Promise.withResolvers();
      await this.look().catch((error: unknown) => log.warn({ error }, "the ways to other hosts could not be kept"));
    }
  }
}
