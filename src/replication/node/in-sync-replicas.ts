/**
 * Which transactions replicas have on disk, and which of them are acknowledged: safe, whichever node is elected next.
 *
 * With `--ack one|quorum` and an elected primary the in-sync nodes are listed in the lease store, and no other can be
 * elected. A transaction is acknowledged when all of them have it, and they are enough. So the next primary has it,
 * independent of clocks. The order of steps ensures this:
 *
 *   a replica joins   acknowledging waits for it from then on → it has all that was acknowledged before → the store lists it
 *   a replica leaves  the store does not list it any more → acknowledging does not wait for it any more
 *
 * While it is unknown whether the store took a list, a replica counts as listed, and not towards the required number.
 */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { REPLICATION_LIMITS } from "../limits.ts";

/** Required replicas per transaction: the option `--ack`. */
export interface AckMode {
  name: "none" | "one" | "quorum";
  replicas: number;
}

export const NO_ACK: AckMode = { name: "none", replicas: 0 };

interface Replica {
  connected: boolean;
  candidate: boolean;
  /** It was sent everything that existed when it connected. */
  ready: boolean;
  acked: Map<string, number>;
  /** Acknowledgements wait for it. */
  required: boolean;
  /** Whether the lease store lists it: known, or possibly. */
  listed: "yes" | "perhaps" | "no";
}

export interface InSyncOptions {
  mode: AckMode;
  /** This node's id. */
  self: string;
  clock: Clock;
  /** Called when more of this database is acknowledged. */
  onAcknowledged(name: string): void;
  log(message: string): void;
}

export class InSyncReplicas {
  readonly mode: AckMode;
  readonly #options: InSyncOptions;
  readonly #replicas = new Map<string, Replica>();
  /** Acknowledged position by database. */
  readonly #acknowledged = new Map<string, number>();
  #publishing = false;
  #retry_ms = 0;
  #late: ReadonlySet<string> = new Set();
  #term = 0;
  /** Publishes to the lease store who may be elected next; true when stored. Undefined without elections. */
  publish: ((nodes: readonly string[]) => Promise<boolean>) | undefined;

  constructor(options: InSyncOptions) {
    this.mode = options.mode;
    this.#options = options;
  }

  /**
   * Begins a term: no replica is known to have anything, and only this node is listed. After a failed handover a term
   * continues with its replicas.
   */
  begin(term: number): void {
    if (term === this.#term) return;
    this.#term = term;
    this.#replicas.clear();
    this.#acknowledged.clear();
  }

  connected(node: string, candidate: boolean): void {
    const known = this.#replicas.get(node);
    const { required = false, listed = "no" } = known ?? {};
    this.#replicas.set(node, { connected: true, candidate, ready: false, acked: new Map(), required, listed });
  }

  disconnected(node: string): void {
    const replica = this.#replicas.get(node);
    if (replica) replica.connected = false;
    this.#settle();
  }

  ready(node: string): void {
    const replica = this.#replicas.get(node);
    if (replica) replica.ready = true;
  }

  /** A replica has a database on disk up to this transaction. */
  acked(node: string, name: string, txid: number): void {
    const replica = this.#replicas.get(node);
    if (!replica) return;
    replica.acked.set(name, Math.max(txid, replica.acked.get(name) ?? 0));
    this.#advance(name);
    this.#settle();
  }

  /** A database was deleted. */
  forget(name: string): void {
    this.#acknowledged.delete(name);
    for (const { acked } of this.#replicas.values()) acked.delete(name);
  }

  /** Whether a replica has a transaction on disk. */
  has(node: string, name: string, txid: number): boolean {
    return (this.#replicas.get(node)?.acked.get(name) ?? 0) >= txid;
  }

  /** Number of replicas that have a transaction on disk. */
  copies(name: string, txid: number): number {
    return [...this.#replicas.values()].filter(({ acked }) => (acked.get(name) ?? 0) >= txid).length;
  }

  isAcknowledged(name: string, txid: number): boolean {
    return this.mode.replicas === 0 || (this.#acknowledged.get(name) ?? 0) >= txid;
  }

  /** Acknowledged position of a database; 0 when nothing is. */
  upTo(name: string): number {
    return this.#acknowledged.get(name) ?? 0;
  }

  /** In-sync replicas with elections; otherwise all that have acknowledged anything. */
  get in_sync(): string[] {
    const counts = ({ listed, acked }: Replica): boolean => (this.publish ? listed === "yes" : acked.size > 0);
    return [...this.#replicas].filter(([, replica]) => counts(replica)).map(([node]) => node);
  }

  /** Whether a replica could become in sync, so that its position should be requested. */
  get someone_joins(): boolean {
    return this.#elected && [...this.#replicas.values()].some(({ required, listed }) => required && listed !== "yes");
  }

  get #elected(): boolean {
    return this.mode.replicas > 0 && this.publish !== undefined;
  }

  /** Called continuously: `late` are replicas that have not responded in time. */
  look(late: ReadonlySet<string>): void {
    if (!this.#elected) return;
    this.#late = late;
    for (const [node, replica] of this.#replicas) {
      if (replica.connected && replica.candidate && replica.ready && !late.has(node)) replica.required = true;
      // An unlisted one can be dropped without updating the store.
      else if (replica.listed === "no") replica.required = false;
    }
    this.#settle();
    for (const name of this.#names()) this.#advance(name);
  }

  #names(): Set<string> {
    return new Set([...this.#replicas.values()].flatMap(({ acked }) => [...acked.keys()]));
  }

  /** Updates the store's list. One change at a time. */
  #settle(): void {
    if (!this.publish || !this.#elected || this.#publishing) return;
    if (this.#options.clock.monotonic() < this.#retry_ms) return;
    const wanted = new Set<string>();
    let different = false;
    for (const [node, replica] of this.#replicas) {
      const keep = replica.listed !== "no" && replica.connected && !this.#late.has(node);
      const join = replica.listed === "no" && replica.required && replica.connected && this.#hasAll(replica);
      if (keep || join) wanted.add(node);
      different ||= join || (replica.listed !== "no" && !keep) || replica.listed === "perhaps";
    }
    if (different) void this.#publish(wanted, this.publish);
  }

  #hasAll({ acked }: Replica): boolean {
    return [...this.#acknowledged].every(([name, txid]) => (acked.get(name) ?? 0) >= txid);
  }

  async #publish(wanted: ReadonlySet<string>, publish: NonNullable<InSyncReplicas["publish"]>): Promise<void> {
    const { log, self, clock } = this.#options;
    const term = this.#term;
    this.#publishing = true;
    for (const [node, replica] of this.#replicas) {
      const changes = wanted.has(node) ? replica.listed !== "yes" : replica.listed !== "no";
      if (changes) replica.listed = "perhaps";
    }
    let done = false;
    try {
      done = await publish([self, ...wanted]);
    } catch (error) {
      log(`nodes in sync: ${messageOf(error)}`);
    }
    this.#publishing = false;
    if (term !== this.#term) return;
    if (done) this.#published(wanted);
    else this.#retry_ms = clock.monotonic() + REPLICATION_LIMITS.in_sync_retry_ms;
  }

  #published(wanted: ReadonlySet<string>): void {
    for (const [node, replica] of this.#replicas) {
      const listed = wanted.has(node) ? "yes" : "no";
      if (replica.listed === "perhaps") this.#options.log(`${node} is ${listed === "yes" ? "" : "not "}in sync`);
      replica.listed = listed;
      if (listed === "no") replica.required = false;
      if (listed === "no" && !replica.connected) this.#replicas.delete(node);
    }
    for (const name of this.#names()) this.#advance(name);
    this.#settle();
  }

  #advance(name: string): void {
    const txid = this.publish ? this.#inSyncUpTo(name) : this.#copiedUpTo(name);
    if (txid <= this.upTo(name)) return;
    this.#acknowledged.set(name, txid);
    this.#options.onAcknowledged(name);
  }

  /** What all listed, or possibly listed, replicas have, if the certainly listed ones suffice. */
  #inSyncUpTo(name: string): number {
    const replicas = [...this.#replicas.values()];
    const listed = replicas.filter((replica) => replica.listed === "yes").length;
    const waited_for = replicas.filter((replica) => replica.required || replica.listed !== "no");
    if (listed < this.mode.replicas || listed === 0) return 0;
    return Math.min(...waited_for.map(({ acked }) => acked.get(name) ?? 0));
  }

  /** What enough replicas have. */
  #copiedUpTo(name: string): number {
    const txids = [...this.#replicas.values()].map(({ acked }) => acked.get(name) ?? 0).sort((a, b) => b - a);
    return txids[this.mode.replicas - 1] ?? 0;
  }
}
