/**
 * The primary's end of the streams to its replicas. A replica is a set of positions in the logs, not a queue: a slow
 * one costs no memory, and one that falls behind the logs gets a snapshot.
 */
import type { ServerResponse } from "node:http";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { ReplicatedDatabase } from "../database/database.ts";
import { blockOf, type PartialSnapshot, sameBlocks } from "../database/partial-snapshot.ts";
import { Snapshot } from "../database/snapshot.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition, type Position } from "../position.ts";
import { type Batch, Batches } from "./batches.ts";
import type { Directory, Dropped } from "./directory.ts";
import type { InSyncReplicas } from "./in-sync-replicas.ts";
import { roomOrEnd } from "./room-or-end.ts";
import { FRAME, jsonFrame, snapshotPartHead, transactionHead } from "./wire.ts";

/** A replica's first message. */
export interface Hello {
  node: string;
  hostname: string;
  term: number;
  databases: Map<string, Position>;
  /** Databases that it cannot use now; they are sent when it requests them again. */
  skip: Set<string>;
  /** Whether it may become primary. */
  candidate: boolean;
  /** Its interrupted snapshots. */
  partial: Map<string, PartialSnapshot>;
}

interface Replica {
  hello: Hello;
  response: ServerResponse;
  /** The next transaction of each database. */
  next: Map<string, number>;
  /** Databases that need a snapshot. */
  whole: Set<string>;
  sending_whole: boolean;
  ready: boolean;
  sent_at_ms: number;
  /** Since when its connection has been congested. */
  full_since_ms: number | undefined;
  stuck: boolean;
  /** The handover was sent: nothing more may follow. */
  ended: boolean;
  /** Since when an acknowledgement is pending, and when it was last requested. */
  ack_pending_since_ms: number | undefined;
  ack_requested_ms: number;
}

export interface StreamsOptions {
  directory: Directory;
  clock: Clock;
  in_sync: Pick<InSyncReplicas, "connected" | "disconnected" | "ready" | "forget">;
  log(message: string): void;
}

export class Streams {
  readonly #options: StreamsOptions;
  readonly #replicas = new Set<Replica>();
  readonly #batches = new Batches();
  #snapshots = 0;
  /** For the metrics. */
  snapshots_sent = 0;
  bytes_sent = 0;

  constructor(options: StreamsOptions) {
    this.#options = options;
  }

  get replicas(): readonly Hello[] {
    return [...this.#replicas].map(({ hello }) => hello);
  }

  /** Begins the response, an endless sequence of frames. */
  add(hello: Hello, response: ServerResponse): void {
    response.removeHeader("transfer-encoding");
    response.writeHead(200, { "content-type": "application/octet-stream" });
    // Even without a frame: a replica reads the term from the headers.
    response.flushHeaders();
    const replica: Replica = {
      hello,
      response,
      next: new Map(),
      whole: new Set(),
      sending_whole: false,
      ready: false,
      sent_at_ms: this.#options.clock.monotonic(),
      full_since_ms: undefined,
      stuck: false,
      ended: false,
      ack_pending_since_ms: undefined,
      ack_requested_ms: 0,
    };
    this.#replicas.add(replica);
    this.#options.in_sync.connected(hello.node, hello.candidate);
    response.on("drain", () => this.#pump(replica));
    response.on("close", () => this.#remove(replica));
    response.on("error", () => this.#remove(replica));
    for (const name of hello.databases.keys()) this.#sendMissing(replica, name);
    this.#pump(replica);
  }

  /**
   * A replica has a database that is not open here. Only a logged deletion proves that it was deleted; otherwise the
   * replica's may be the last copy.
   */
  #sendMissing(replica: Replica, name: string): void {
    const { directory } = this.#options;
    if (directory.get(name)) return;
    const deleted = directory.deletedAt(name);
    const reason = directory.problems.get(name)?.reason;
    if (deleted) this.#write(replica, jsonFrame(FRAME.gone, { name, position: formatPosition(deleted) }));
    else this.#write(replica, jsonFrame(FRAME.unknown, { name, ...(reason === undefined ? {} : { reason }) }));
  }

  /**
   * A replica reports its position again, because what it was sent did not fit. Returns false when it is not connected.
   */
  place(node: string, name: string, position: Position | undefined): boolean {
    const replica = this.#find(node);
    if (!replica) return false;
    replica.next.delete(name);
    replica.whole.delete(name);
    replica.hello.skip.delete(name);
    if (position) replica.hello.databases.set(name, position);
    else replica.hello.databases.delete(name);
    this.#pump(replica);
    return true;
  }

  /** Sends every replica what it lacks, of one database or of all. */
  pump(name?: string): void {
    for (const replica of this.#replicas) this.#fill(replica, name);
    this.#batches.forget();
  }

  #remove(replica: Replica): void {
    const { node } = replica.hello;
    // A reconnected replica has another connection.
    if (this.#replicas.delete(replica) && !this.#find(node)) this.#options.in_sync.disconnected(node);
  }

  /** Requests every replica's durable position: one request at a time, repeated without a response. */
  requestAcks(): void {
    const now_ms = this.#options.clock.monotonic();
    for (const replica of this.#replicas) {
      const { ended, ack_pending_since_ms, ack_requested_ms } = replica;
      if (ended || (ack_pending_since_ms !== undefined && now_ms - ack_requested_ms < REPLICATION_LIMITS.ack_ms))
        continue;
      replica.ack_pending_since_ms ??= now_ms;
      replica.ack_requested_ms = now_ms;
      this.#write(replica, jsonFrame(FRAME.sync, {}));
    }
  }

  /** A replica has acknowledged. Returns false when it is not connected. */
  answered(node: string): boolean {
    const replica = this.#find(node);
    if (replica) replica.ack_pending_since_ms = undefined;
    return replica !== undefined;
  }

  /** Replicas that have not acknowledged in time. */
  get late(): Set<string> {
    const since_ms = this.#options.clock.monotonic() - REPLICATION_LIMITS.ack_ms;
    const late = [...this.#replicas].filter(
      ({ ack_pending_since_ms = since_ms + 1 }) => ack_pending_since_ms <= since_ms,
    );
    return new Set(late.map(({ hello }) => hello.node));
  }

  /** Called continuously: sends heartbeats, and retries what failed. */
  heartbeat(): void {
    const now_ms = this.#options.clock.monotonic();
    for (const replica of this.#replicas) {
      if (replica.whole.size > 0) this.#pump(replica);
      if (now_ms - replica.sent_at_ms < REPLICATION_LIMITS.heartbeat_ms || replica.ended) continue;
      this.#tellTime(replica);
    }
  }

  /** How long the slowest replica has been behind. */
  get lag_ms(): number {
    const now_ms = this.#options.clock.monotonic();
    return Math.max(0, ...[...this.#replicas].map(({ full_since_ms = now_ms }) => now_ms - full_since_ms));
  }

  /** Returns false when writers must wait for a replica that takes data more slowly than it is written. */
  keepsUp(max_lag_ms: number): boolean {
    const now_ms = this.#options.clock.monotonic();
    let keeps_up = true;
    for (const replica of this.#replicas) {
      const lag_ms = now_ms - (replica.full_since_ms ?? now_ms);
      const stuck = lag_ms > max_lag_ms * REPLICATION_LIMITS.stuck_lags;
      if (stuck !== replica.stuck) {
        const what = stuck ? `has not taken anything for ${Math.round(lag_ms)} ms; it is not waited for` : "goes on";
        this.#options.log(`replica ${replica.hello.hostname} ${what}`);
      }
      replica.stuck = stuck;
      if (replica.ready && !stuck && lag_ms > max_lag_ms / 2) keeps_up = false;
    }
    return keeps_up;
  }

  /** A database was deleted; replicas that have everything before get the last transaction. */
  dropped({ name, info, ltx }: Dropped): void {
    this.#options.in_sync.forget(name);
    for (const replica of this.#replicas) {
      const next = replica.next.get(name);
      replica.next.delete(name);
      replica.whole.delete(name);
      // Its old position does not apply to the next database of this name.
      replica.hello.databases.delete(name);
      if (next === info.position.txid) this.#write(replica, transactionHead(name, ltx.length), ltx);
      else this.#write(replica, jsonFrame(FRAME.gone, { name, position: formatPosition(info.position) }));
    }
  }

  /** Whether the node has been sent everything. */
  hasAll(node: string): boolean {
    const replica = this.#find(node);
    if (!replica || replica.whole.size > 0 || replica.sending_whole || replica.hello.skip.size > 0) return false;
    return [...this.#options.directory].every(({ name, position }) => replica.next.get(name) === position.txid + 1);
  }

  /** The last frame of a stream: take over at these positions. */
  handOff(node: string, term: number): boolean {
    const replica = this.#find(node);
    if (!replica) return false;
    this.#write(replica, jsonFrame(FRAME.handoff, { term, positions: this.#options.directory.positions() }));
    replica.ended = true;
    return true;
  }

  close(): void {
    for (const { response, ended } of this.#replicas) if (!ended) response.end();
    for (const replica of Array.from(this.#replicas)) this.#remove(replica);
  }

  #find(node: string): Replica | undefined {
    return [...this.#replicas].find((replica) => replica.hello.node === node && !replica.ended);
  }

  #pump(replica: Replica): void {
    this.#fill(replica);
    this.#batches.forget();
  }

  #fill(replica: Replica, only?: string): void {
    if (replica.ended) return;
    const { directory } = this.#options;
    const one = only === undefined ? undefined : directory.get(only);
    for (const database of one ? [one] : directory) {
      if (this.#sendOf(replica, database)) continue;
      replica.full_since_ms ??= this.#options.clock.monotonic();
      return;
    }
    if (!one) replica.full_since_ms = undefined;
    // During a snapshot, transactions of other databases are sent between its parts.
    if (replica.sending_whole) return;
    const [name] = replica.whole;
    if (name !== undefined) this.#beginWhole(replica, name);
    else if (!replica.ready && !one) this.#tellReady(replica);
  }

  /** Returns false when the connection is congested. */
  #sendOf(replica: Replica, database: ReplicatedDatabase): boolean {
    const { name } = database;
    if (replica.hello.skip.has(name)) return true;
    if (!replica.next.has(name) && !replica.whole.has(name)) this.#place(replica, database);
    return this.#sendNext(replica, database);
  }

  #beginWhole(replica: Replica, name: string): void {
    this.#sendWhole(replica, name).catch((error: unknown) => {
      // The next one begins anew when the database is open again. The others continue.
      this.#options.log(`${name}: snapshot for ${replica.hello.hostname} failed: ${messageOf(error)}`);
    });
  }

  #tellReady(replica: Replica): void {
    replica.ready = true;
    this.#options.in_sync.ready(replica.hello.node);
    this.#write(replica, jsonFrame(FRAME.ready, {}));
    // A snapshot has no timestamp, and nothing else may follow for a while.
    this.#tellTime(replica);
  }

  #tellTime(replica: Replica): void {
    this.#write(replica, jsonFrame(FRAME.heartbeat, { at: this.#options.clock.now() }));
  }

  /** Decides, once per stream and database, whether our log continues the replica's position. */
  #place(replica: Replica, database: ReplicatedDatabase): void {
    const theirs = replica.hello.databases.get(database.name);
    const follows = theirs !== undefined && database.checksumAt(theirs.txid) === theirs.checksum;
    if (!follows) {
      replica.whole.add(database.name);
      return;
    }
    replica.next.set(database.name, theirs.txid + 1);
    this.#write(replica, jsonFrame(FRAME.known, { name: database.name }));
  }

  /** Returns false when the connection is congested; its drain event follows. */
  #sendNext(replica: Replica, database: ReplicatedDatabase): boolean {
    let next = replica.next.get(database.name);
    while (next !== undefined && next <= database.log.durable) {
      if (replica.response.writableLength > REPLICATION_LIMITS.stream_waiting_bytes) return false;
      const batch = this.#batches.from(database, next);
      if (!batch) {
        // The log no longer has it.
        replica.next.delete(database.name);
        replica.whole.add(database.name);
        return true;
      }
      this.#sendBatch(replica, batch);
      next = batch.next;
      replica.next.set(database.name, next);
    }
    return true;
  }

  async #sendWhole(replica: Replica, name: string): Promise<void> {
    if (this.#snapshots >= REPLICATION_LIMITS.snapshots) return;
    const database = this.#options.directory.get(name);
    const snapshot = database && Snapshot.take(database);
    // Deleted meanwhile, or being written right now. The next pump retries.
    if (!database) replica.whole.delete(name);
    if (!snapshot) return;
    database.log.syncNow();
    this.#snapshots++;
    replica.sending_whole = true;
    try {
      this.#options.log(`${name}: sending all ${snapshot.bytes} bytes to ${replica.hello.hostname}`);
      await this.#sendSnapshot(replica, name, snapshot);
      this.snapshots_sent++;
      replica.whole.delete(name);
      replica.next.set(name, snapshot.position.txid + 1);
    } finally {
      snapshot.close();
      this.#snapshots--;
      replica.sending_whole = false;
    }
    this.pump();
  }

  async #sendSnapshot(replica: Replica, name: string, snapshot: Snapshot): Promise<void> {
    const partial = replica.hello.partial.get(name);
    // Used once: from here on the replica's state differs.
    replica.hello.partial.delete(name);
    const kept = partial ? sameBlocks(partial, snapshot.page_size, snapshot.blocks) : new Set<number>();
    if (kept.size > 0) this.#options.log(`${name}: ${replica.hello.hostname} has ${kept.size} blocks of it already`);
    const { position, ...head } = snapshot.head;
    const at = formatPosition(position);
    this.#write(replica, jsonFrame(FRAME.snapshot, { name, position: at, ...head, kept: [...kept] }));
    // Memory that was sent is used again.
    const spare: Buffer[] = [];
    const memory = (bytes: number): Buffer => (spare.pop() ?? Buffer.allocUnsafeSlow(bytes)).subarray(0, bytes);
    for (const { first, data } of snapshot.runs(memory, (page) => kept.has(blockOf(page)))) {
      if (replica.response.destroyed) return;
      const head_bytes = snapshotPartHead(first, data.length);
      this.#count(replica, [head_bytes, data]);
      replica.response.write(head_bytes);
      replica.response.write(data, () => spare.push(data));
      // A turn of the loop after each part: transactions go on meanwhile.
      await new Promise<void>((done) => setImmediate(done));
      while (replica.response.writableLength > REPLICATION_LIMITS.stream_waiting_bytes) {
        await roomOrEnd(replica.response);
      }
    }
    snapshot.mustBeOpen();
    this.#write(replica, jsonFrame(FRAME.snapshot_end, { name }));
  }

  #sendBatch(replica: Replica, batch: Batch): void {
    this.#count(replica, batch.parts);
    this.#batches.send(batch, replica.response);
  }

  #write(replica: Replica, ...parts: Buffer[]): void {
    this.#count(replica, parts);
    for (const part of parts) replica.response.write(part);
  }

  #count(replica: Replica, parts: readonly Buffer[]): void {
    replica.sent_at_ms = this.#options.clock.monotonic();
    for (const { length } of parts) this.bytes_sent += length;
  }
}
