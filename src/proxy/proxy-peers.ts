/**
 * The other edge proxies of the platform, one per control process. Each publishes its traffic in the store, so that
 * autostop considers all of them. Before a machine is stopped, every edge proxy removes it from its routing and
 * confirms that; one that still has requests for it objects, and the machine keeps running.
 */
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import type { Entry } from "#network/directory.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { PeerState, ProxyPeer, ProxyStore } from "./store.ts";

interface ProxyPeersParts {
  node_id: string;
  store: Pick<ProxyStore, "peers" | "putPeerState" | "forgetPeer">;
  notifier: Notifier;
  clock: Clock;
  log: Log;
  /** Machines with autostop that were recently used through this proxy, with their load here. */
  uses(): Record<string, number>;
  find(machine_id: string): Entry | undefined;
  /** Removes a machine from this proxy's routing; returns the function that restores it. */
  withdraw(machine: Entry): Promise<() => void>;
}

/** A machine that another proxy wants to stop. */
interface Granted {
  putBack: () => void;
  /** Since when no proxy wants to stop it, on the monotonic clock. */
  unwanted_at: number | undefined;
}

export class ProxyPeers {
  readonly #parts: ProxyPeersParts;
  /** When each peer's last heartbeat was first seen. */
  readonly #seen = new Map<string, { beat: number; at: number }>();
  #others = new Map<string, PeerState>();
  /** Machines that we want to stop, and their apps. */
  readonly #resting = new Map<string, string>();
  readonly #granted = new Map<string, Granted>();
  #turn: Promise<unknown> = Promise.resolve();
  #heard = Promise.withResolvers<void>();
  #notified = "";
  #end: (() => void) | undefined;

  constructor(parts: ProxyPeersParts) {
    this.#parts = parts;
  }

  start(): void {
    const { notifier, log } = this.#parts;
    this.#end = notifier.listen("doors", () => {
      this.#heard.resolve();
      this.#heard = Promise.withResolvers();
      this.exchange().catch((error: unknown) =>
        log.warn({ error }, "the state of other edge proxies could not be read"),
      );
    });
  }

  async close(): Promise<void> {
    const { store, node_id } = this.#parts;
    this.#end?.();
    // If this fails, peers notice the missing heartbeats.
    await store.forgetPeer(node_id).catch(() => {});
  }

  /** A machine's load through peers; undefined when none of them used it recently. */
  use(machine_id: string): number | undefined {
    const uses = [...this.#others.values()].flatMap((state) => state.uses[machine_id] ?? []);
    return uses.length > 0 ? uses.reduce((sum, load) => sum + load, 0) : undefined;
  }

  /** Reads the peers' state, grants their requests, and publishes our own. One at a time. */
  async exchange(): Promise<void> {
    const done = this.#turn.catch(() => {}).then(() => this.#exchange());
    this.#turn = done;
    await done;
  }

  /** Whether all peers agree to stop the machine. Until `release` they send it no requests. */
  async agree({ id, app_id }: Pick<Entry, "id" | "app_id">): Promise<boolean> {
    const { clock } = this.#parts;
    if (this.#others.size === 0) await this.exchange();
    // One at a time per app: otherwise two proxies could each stop one of the last two machines.
    if ([...this.#others.values()].some((state) => Object.values(state.resting).includes(app_id))) return false;
    this.#resting.set(id, app_id);
    const until = clock.monotonic() + PROXY_LIMITS.agree_ms;
    for (;;) {
      const heard = this.#heard.promise;
      await this.exchange();
      if (this.use(id) !== undefined || this.#outranked(app_id)) return false;
      if ([...this.#others.values()].every(({ quiet }) => quiet.includes(id))) return true;
      if (clock.monotonic() >= until) return false;
      await Promise.race([heard, clock.sleep(PROXY_LIMITS.agree_look_ms)]);
    }
  }

  async release(machine_id: string): Promise<void> {
    if (this.#resting.delete(machine_id)) await this.exchange();
  }

  /** Of two proxies with requests for one app, the one with the lower name wins. */
  #outranked(app_id: string): boolean {
    return [...this.#others].some(
      ([node_id, { resting }]) => node_id < this.#parts.node_id && Object.values(resting).includes(app_id),
    );
  }

  async #exchange(): Promise<void> {
    const { store, clock, node_id, notifier, uses } = this.#parts;
    this.#onNotification(await store.peers());
    const refused = await this.#grant();
    const state: PeerState = {
      uses: uses(),
      resting: Object.fromEntries(this.#resting),
      quiet: [...this.#granted.keys()],
    };
    await store.putPeerState({ node_id, word: state, seen_at: clock.now() }, clock.now() - PROXY_LIMITS.peer_kept_ms);
    const content = JSON.stringify([state.resting, state.quiet, refused]);
    // Peers also poll; only changes that they wait for are notified.
    if (content !== this.#notified) notifier.send("doors", node_id);
    this.#notified = content;
  }

  #onNotification(peers: readonly ProxyPeer[]): void {
    const now = this.#parts.clock.monotonic();
    const live = peers.filter(({ node_id, beat }) => {
      if (node_id === this.#parts.node_id) return false;
      const seen = this.#seen.get(node_id);
      if (seen?.beat !== beat) this.#seen.set(node_id, { beat, at: now });
      return seen?.beat !== beat || now - seen.at < PROXY_LIMITS.peer_silent_ms;
    });
    this.#others = new Map(live.map(({ node_id, word }) => [node_id, word]));
  }

  /** Grants the peers' requests; returns the machines that are refused. */
  async #grant(): Promise<string[]> {
    const wanted = new Set([...this.#others.values()].flatMap(({ resting }) => Object.keys(resting)));
    for (const id of wanted) if (!this.#granted.has(id)) await this.#revoke(id);
    for (const [id, granted] of this.#granted) this.#putBack(id, granted, wanted.has(id));
    return [...wanted].filter((id) => !this.#granted.has(id));
  }

  /** Withdraws a machine that a peer wants to stop, unless it is in use here. */
  async #revoke(id: string): Promise<void> {
    const { find, uses, withdraw } = this.#parts;
    const machine = find(id);
    if (uses()[id] !== undefined || this.#keeps(machine)) return;
    const putBack = machine ? await withdraw(machine) : () => {};
    // A request may have arrived before all workers knew.
    if (uses()[id] === undefined) this.#granted.set(id, { putBack, unwanted_at: undefined });
    else putBack();
  }

  #putBack(id: string, granted: Granted, wanted: boolean): void {
    const { find, clock } = this.#parts;
    const now = clock.monotonic();
    granted.unwanted_at = wanted ? undefined : (granted.unwanted_at ?? now);
    // The notification that it was stopped may arrive after the one that the request ended.
    const early = find(id)?.state === "started" && now - (granted.unwanted_at ?? now) < PROXY_LIMITS.put_back_ms;
    if (wanted || early) return;
    this.#granted.delete(id);
    granted.putBack();
  }

  /** We have a request for the same app ourselves, with a lower name than all others. */
  #keeps(machine: Entry | undefined): boolean {
    if (!machine || ![...this.#resting.values()].includes(machine.app_id)) return false;
    return !this.#outranked(machine.app_id);
  }
}
