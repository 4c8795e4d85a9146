/**
 * Tracks acknowledgements on the primary: requests the replicas' durable positions, and serves callers that wait for
 * them.
 */
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { hex16, type Position } from "../position.ts";
import type { Directory } from "./directory.ts";
import { type AckMode, InSyncReplicas, NO_ACK } from "./in-sync-replicas.ts";
import type { PositionWaits } from "./position-waits.ts";
import type { Streams } from "./streams.ts";

export interface AcknowledgementsOptions {
  /** This node's id. */
  self: string;
  directory: Directory;
  waits: PositionWaits;
  clock: Clock;
  mode?: AckMode;
  max_unacked?: number;
  /** Evaluated each time, because a handover creates new ones. */
  streams(): Streams;
  /** The term of which this node is primary; undefined when it is not. */
  term(): number | undefined;
  log(message: string): void;
}

export class Acknowledgements {
  readonly in_sync: InSyncReplicas;
  readonly #options: AcknowledgementsOptions;
  /** Positions when this node became primary, or opened them: earlier transactions are not waited for. */
  readonly #before = new Map<string, number>();
  #wanted = 0;

  constructor(options: AcknowledgementsOptions) {
    const { mode = NO_ACK, self, clock, log, waits } = options;
    this.#options = options;
    this.in_sync = new InSyncReplicas({ mode, self, clock, log, onAcknowledged: (name) => waits.notify(name) });
  }

  /** Whether this node may act as primary. */
  get is_primary(): boolean {
    return this.#options.term() !== undefined;
  }

  get mode(): AckMode {
    return this.in_sync.mode;
  }

  begin(term: number): void {
    this.in_sync.begin(term);
    this.#before.clear();
    for (const { name, position } of this.#options.directory) this.#before.set(name, position.txid);
  }

  /** Called at every poll of the primary, and whenever acknowledgements may be needed. */
  look(): void {
    const streams = this.#options.streams();
    this.in_sync.look(streams.late);
    if (this.#wanted > 0 || this.in_sync.someone_joins || this.#behind()) streams.requestAcks();
  }

  #behind(): boolean {
    if (this.mode.replicas === 0) return false;
    return [...this.#options.directory].some(({ name, log }) => log.durable > this.in_sync.upTo(name));
  }

  /** Something new is durable here: waiters need not wait for the next poll. */
  captured(): void {
    if (this.#wanted > 0) this.#options.streams().requestAcks();
  }

  /** A replica's positions on disk. Those outside our history are ignored. */
  take(node: string, term: number, positions: ReadonlyMap<string, Position>): void {
    const own = this.#options.term();
    if (own !== term) fail("conflict", `this node is not the primary of term ${term}`);
    if (!this.#options.streams().answered(node)) fail("conflict", `replica ${node} is not connected`);
    for (const [name, { txid, checksum }] of positions) {
      if (this.#options.directory.get(name)?.checksumAt(txid) !== checksum) continue;
      this.in_sync.acked(node, name, txid);
      this.#options.waits.notify(name);
    }
    this.look();
  }

  /**
   * Whether a replica has everything on its disk, which it is asked for as long as it may not. That it was sent is not
   * enough: it may be elected before it has read what is on its way.
   */
  hasAll(node: string): boolean {
    const streams = this.#options.streams();
    if (!streams.hasAll(node)) return false;
    if ([...this.#options.directory].every(({ name, position }) => this.in_sync.has(node, name, position.txid)))
      return true;
    streams.requestAcks();
    return false;
  }

  /** Whether local writers are too far ahead of the acknowledged position. */
  tooFarAhead({ name, position }: ReplicatedDatabase): boolean {
    if (this.mode.replicas === 0) return false;
    const before = this.#before.get(name) ?? position.txid;
    this.#before.set(name, before);
    const { max_unacked = REPLICATION_LIMITS.max_unacked } = this.#options;
    return position.txid - Math.max(before, this.in_sync.upTo(name)) >= max_unacked;
  }

  /** True when a transaction is acknowledged and this many replicas have it; false after the timeout. */
  async until(
    name: string,
    txid: number,
    wait: { replicas: number; ms: number; signal?: AbortSignal },
  ): Promise<boolean> {
    const { waits, term } = this.#options;
    const began = term();
    const reached = (): boolean =>
      began !== undefined &&
      term() === began &&
      this.in_sync.isAcknowledged(name, txid) &&
      (wait.replicas <= this.mode.replicas || this.in_sync.copies(name, txid) >= wait.replicas);
    if (reached()) return true;
    this.#wanted++;
    try {
      this.look();
      return await waits.until(name, reached, wait.ms, wait.signal);
    } finally {
      this.#wanted--;
    }
  }

  /** For /info. */
  info(): object {
    if (this.mode.replicas === 0) return {};
    const { directory } = this.#options;
    const upTo = [...directory].map(({ name }) => [name, hex16(this.in_sync.upTo(name))] as const);
    const { name: mode, replicas } = this.mode;
    return { ack: { mode, replicas, inSync: this.in_sync.in_sync, acknowledged: Object.fromEntries(upTo) } };
  }
}
