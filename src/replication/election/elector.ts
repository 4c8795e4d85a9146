/**
 * Makes a node primary while it has the lease, and otherwise a replica of the holder.
 *
 * Safety rests on one comparison: a primary stops itself when its own monotonic clock says that the lease, counted
 * from before the request, is within a margin of its end. Whatever the network does, it stops before the store can
 * grant the lease to another node, as long as clocks run at about the same speed.
 */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { Mutex } from "../mutex.ts";
import type { InSync } from "./in-sync.ts";
import type { Lease, LeaseStore } from "./lease-store.ts";

/** A node that can be elected. */
export interface Electable {
  readonly id: string;
  readonly term: number;
  readonly complete_term: number;
  /** Stores durably that this node is complete in a term it is about to lead. */
  claim(term: number): void;
  /** `until_ms` returns, at any time, until when (monotonic) writes may be accepted. */
  becomePrimary(term: number, until_ms: () => number): Promise<void>;
  becomeReplica(primary_url: string): Promise<void>;
  /** After it returns, no writes are accepted any more. */
  fence(): Promise<void>;
}

export interface ElectorOptions {
  node: Electable;
  /** URL for replicas. */
  url: string;
  leases: LeaseStore;
  clock: Clock;
  /** False for a node that never becomes primary. */
  candidate: boolean;
  ttl_ms?: number;
  renew_ms?: number;
  margin_ms?: number;
  /** Only in-sync nodes may be elected; see `setInSync`. Otherwise any complete one. */
  keeps_in_sync?: boolean;
  log(message: string): void;
}

export class Elector {
  readonly #options: ElectorOptions;
  readonly #ttl_ms: number;
  readonly #renew_ms: number;
  readonly #margin_ms: number;
  #lease: { lease: Lease; fence_at_ms: number; in_sync: InSync | undefined } | undefined;
  /** The node does not stand for election before this, after it gave the lease away. */
  #wait_until_ms = 0;
  /** Consecutive failures to get a free lease. */
  #refusals = 0;
  readonly #wake = new EventTarget();
  /** Serializes attempts to get the lease. */
  readonly #attempts = new Mutex();

  constructor(options: ElectorOptions) {
    this.#options = options;
    const { lease_ms, lease_renewals, lease_margin } = REPLICATION_LIMITS;
    this.#ttl_ms = options.ttl_ms ?? lease_ms;
    this.#renew_ms = options.renew_ms ?? this.#ttl_ms / lease_renewals;
    this.#margin_ms = options.margin_ms ?? this.#ttl_ms * lease_margin;
  }

  get lease(): Lease | undefined {
    return this.#lease?.lease;
  }

  /** Runs until the signal, then releases the lease. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#lease) await this.#keep();
        else await this.#look();
      } catch (error) {
        if (!signal.aborted) this.#options.log(`election: ${messageOf(error)}`);
      }
      await this.#rest(signal);
    }
    await this.#giveBack();
  }

  /**
   * Tries to take the lease now: requested by a user, or as the chosen successor. One attempt at a time, because two
   * would take the lease from each other with different terms.
   */
  async stand(force = false): Promise<boolean> {
    return await this.#attempts.acquire(() => this.#lease !== undefined || this.#acquire(force));
  }

  async #acquire(force: boolean): Promise<boolean> {
    const { leases, node, url, clock } = this.#options;
    const asked_ms = clock.monotonic();
    const candidate = { node: node.id, url, term: node.term, complete_term: node.complete_term };
    const lease = await this.#inTime(leases.acquire(candidate, this.#ttl_ms, force), this.#ttl_ms);
    if (!lease) return false;
    // Before the store records the term's primary: a crash in between would leave a term in which no node is complete,
    // and none could be elected.
    node.claim(lease.term);
    const in_sync = this.#options.keeps_in_sync ? { version: 0, nodes: [node.id] } : undefined;
    if (!(await this.#inTime(leases.renew(lease, this.#ttl_ms, in_sync), this.#ttl_ms))) return false;
    this.#lease = { lease, fence_at_ms: asked_ms + this.#ttl_ms - this.#margin_ms, in_sync };
    // After a slow response the lease may have expired.
    if (clock.monotonic() >= this.#lease.fence_at_ms) await this.#lose("was granted too late");
    else await this.#becomePrimary(lease);
    this.#wake.dispatchEvent(new Event("wake"));
    return this.#lease !== undefined;
  }

  async #becomePrimary(lease: Lease): Promise<void> {
    const { node, leases } = this.#options;
    try {
      await node.becomePrimary(lease.term, () => this.#acceptUntil(lease));
    } catch (error) {
      // A lease without a primary would block other candidates.
      this.#lease = undefined;
      await leases.release(lease).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Publishes which nodes may be elected next, including this one. Returns true when stored. After false or an error it
   * is unknown and is repeated with each renewal.
   */
  async setInSync(nodes: readonly string[]): Promise<boolean> {
    const held = this.#lease;
    if (!held?.in_sync) return false;
    const in_sync = { version: held.in_sync.version + 1, nodes };
    held.in_sync = in_sync;
    const { leases } = this.#options;
    const done = await this.#inTime(leases.renew(held.lease, this.#ttl_ms, in_sync), this.#renew_ms);
    return done && this.#lease === held && held.in_sync === in_sync;
  }

  /** Hands the lease to a successor after `prepare` has brought it up to date. */
  async handOff(successor: string, prepare: () => Promise<void>): Promise<void> {
    const { leases, clock } = this.#options;
    const held = this.#lease;
    if (!held) fail("conflict", "this node does not have the lease");
    await prepare();
    // From here on this node is fenced, whether or not the store can be reached.
    this.#lease = undefined;
    this.#wait_until_ms = clock.monotonic() + REPLICATION_LIMITS.handoff_ms;
    await leases.release(held.lease, { node: successor, for_ms: REPLICATION_LIMITS.handoff_ms });
  }

  /** Checked before each action of a primary, because a process may be paused for longer than the lease. */
  #acceptUntil(lease: Lease): number {
    return this.#lease?.lease === lease ? this.#lease.fence_at_ms : Number.NEGATIVE_INFINITY;
  }

  async #keep(): Promise<void> {
    const held = this.#lease;
    if (!held) return;
    const { leases, clock } = this.#options;
    const asked_ms = clock.monotonic();
    if (asked_ms >= held.fence_at_ms) return this.#lose("could not be renewed in time");
    let renewed: boolean | undefined;
    try {
      // Not awaited fully: a second attempt may succeed where the first was lost.
      const patience_ms = Math.min(this.#renew_ms, held.fence_at_ms - asked_ms);
      renewed = await this.#inTime(leases.renew(held.lease, this.#ttl_ms, held.in_sync), patience_ms);
    } catch (error) {
      this.#options.log(`lease: ${messageOf(error)}`);
    }
    if (this.#lease !== held) return;
    if (renewed === true) held.fence_at_ms = asked_ms + this.#ttl_ms - this.#margin_ms;
    else if (renewed === false) await this.#lose("is somebody else's");
    else if (clock.monotonic() >= held.fence_at_ms) await this.#lose("could not be renewed in time");
  }

  async #look(): Promise<void> {
    const { leases, node, candidate, clock } = this.#options;
    const holder = await this.#inTime(leases.holder(), this.#ttl_ms);
    if (this.#lease) return;
    if (holder && holder.node !== node.id) {
      this.#refusals = 0;
      return node.becomeReplica(holder.url);
    }
    if (!candidate || clock.monotonic() < this.#wait_until_ms) return;
    this.#refusals = (await this.stand()) ? 0 : this.#refusals + 1;
    // A single failure may be a lost race.
    if (this.#refusals === 2) {
      this.#options.log(
        "no node has the lease, and this node may not be elected: it may lack transactions; promote --force overrides that",
      );
    }
  }

  async #lose(why: string): Promise<void> {
    this.#options.log(`lease of term ${this.#lease?.lease.term} ${why}`);
    this.#lease = undefined;
    await this.#options.node.fence();
  }

  async #giveBack(): Promise<void> {
    const held = this.#lease;
    this.#lease = undefined;
    if (!held) return;
    await this.#options.node.fence();
    await this.#inTime(this.#options.leases.release(held.lease), this.#margin_ms).catch(() => undefined);
  }

  /** Sleeps until the next renewal, fencing, or check for the primary. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const held = this.#lease;
    const until_fence_ms = held ? held.fence_at_ms - clock.monotonic() : Number.POSITIVE_INFINITY;
    const usual_ms = held ? this.#renew_ms : this.#renew_ms / 2;
    const ms = Math.max(1, Math.min(usual_ms, until_fence_ms));
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    this.#wake.addEventListener("wake", wake);
    signal.addEventListener("abort", wake);
    await clock.sleep(ms, woken.signal).catch(() => undefined);
    this.#wake.removeEventListener("wake", wake);
    signal.removeEventListener("abort", wake);
  }

  /** The result, or an error after `ms` of silence. */
  async #inTime<T>(work: Promise<T>, ms: number): Promise<T> {
    const done = new AbortController();
    const late = this.#options.clock.sleep(Math.max(0, ms), done.signal).then(
      () => {
        throw new Error("the lease store does not answer");
      },
      () => new Promise<never>(() => undefined),
    );
    try {
      return await Promise.race([work, late]);
    } finally {
      done.abort();
    }
  }
}
