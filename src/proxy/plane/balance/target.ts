import type { Socket } from "node:net";
import { dial, Endpoint } from "#core/dial.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import type { Slots } from "../../slots.ts";
import type { Target } from "../../table.ts";
import type { TargetCounters } from "../counters.ts";
import { TO_MACHINE, Upstream, type UpstreamConnection, type UpstreamOwner } from "../http1/upstream.ts";
import { Http2Backend } from "../http2/backend.ts";

/** Shared by the targets of one worker. */
export interface WorkerContext {
  slots: Slots;
  worker: number;
  /** Milliseconds of the monotonic clock. */
  now(): number;
  /** Seconds of the control thread's clock, for values it compares. */
  shared_s(): number;
  /** Reports that a machine's port refuses connections. */
  unreachable(target: Target): void;
}

/**
 * One service of one machine in a worker: its idle connections, and its load in all workers. With `requests`, each
 * request in progress counts; with `connections`, each connection to the machine, including idle ones, so the machine
 * never exceeds its hard limit of either.
 */
export class TargetState implements UpstreamOwner {
  table: Target;
  /** The machine's addresses; shared by all connections to remember which one responds. */
  readonly endpoint: Endpoint;
  readonly counters: TargetCounters;
  /** Called when capacity is freed. */
  readonly onRoom = new Set<() => void>();
  readonly #context: WorkerContext;
  /** Used last in, first out, so that unneeded connections expire. */
  readonly #idle: Upstream[] = [];
  /** Idle connections that count as load. */
  readonly #resting = new Set<Upstream>();
  /** Connections that are closed after their exchange. */
  readonly #single = new WeakSet<Upstream>();
  /** Why it refuses connections, if known. */
  reason: string | undefined;
  /** End of the back-off after a refused connection. */
  #backoff_until = 0;
  #reported_at = Number.NEGATIVE_INFINITY;
  #withdrawn = false;
  #backend: Http2Backend | undefined;

  constructor(table: Target, floor: WorkerContext, counters: TargetCounters) {
    this.table = table;
    this.endpoint = new Endpoint(table);
    this.#context = floor;
    this.counters = counters;
    floor.slots.touch(table.slot, floor.shared_s());
  }

  get load(): number {
    return this.#context.slots.load(this.table.slot);
  }

  get inUse(): number {
    return this.#context.slots.inUse(this.table.slot);
  }

  get backingOff(): boolean {
    return this.#backoff_until > this.#context.now();
  }

  /** Load for a new request relative to the soft limit (1); undefined at the hard limit. */
  fullness(): number | undefined {
    const { mode, soft, hard } = this.table;
    const reusable = mode === "connections" && this.#idle.length > 0;
    if (this.load >= hard && !reusable) return undefined;
    // Idle connections of other workers are no load on the machine either.
    return this.inUse / soft;
  }

  /** Reserves capacity for one request or connection; every `true` needs one `release`. */
  acquire(): boolean {
    return this.#context.slots.acquire(this.table.slot, this.table.hard, this.#context.worker);
  }

  release(): void {
    const { slots, worker } = this.#context;
    slots.release(this.table.slot, worker, this.#context.shared_s());
    this.#room();
  }

  /**
   * Gets a connection for one HTTP exchange; returns false without capacity. With `requests` the caller holds the
   * reservation and releases it after the exchange; with `connections` the connection holds it.
   */
  take(
    how: { fresh: boolean; preface: Buffer | undefined; upgrade?: boolean },
    done: (line: UpstreamConnection | undefined, problem?: Error) => void,
  ): boolean {
    if (this.table.h2) return this.#takeStream(done);
    const counted = this.table.mode === "connections";
    const known = how.fresh || how.preface ? undefined : this.#unused();
    if (known) {
      if (!counted && !this.acquire()) {
        this.#rest(known);
        return false;
      }
      done(known);
      return true;
    }
    // The reservation of an idle connection is reused for a new one.
    if (!this.acquire() && !(counted && this.#dropOne() && this.acquire())) return false;
    const started = this.#context.now();
    const opened = (upstream: Upstream | undefined, problem?: Error): void => {
      if (!upstream) {
        this.#refused();
        done(undefined, problem);
        return;
      }
      this.reason = undefined;
      this.counters.connected((this.#context.now() - started) / 1000);
      if (how.preface) this.#single.add(upstream);
      done(upstream);
    };
    Upstream.open(this.endpoint, this, opened, how);
    return true;
  }

  /** Returns a connection that was not needed. */
  giveBack(line: UpstreamConnection): void {
    line.abandon();
    if (this.table.mode === "requests") this.release();
  }

  /** Opens a plain socket; its reservation is released when it closes. */
  takeSocket(preface: Buffer | undefined, done: (socket: Socket | undefined, problem?: Error) => void): boolean {
    if (!this.acquire() && !(this.#dropOne() && this.acquire())) return false;
    const started = this.#context.now();
    dial(this.endpoint, TO_MACHINE, (socket, problem) => {
      if (!socket) {
        this.#refused();
        return done(undefined, problem);
      }
      this.reason = undefined;
      this.counters.connected((this.#context.now() - started) / 1000);
      this.hold(socket);
      if (preface) socket.write(preface);
      done(socket);
    });
    return true;
  }

  /** Ties the reservation to this connection. */
  hold(socket: Socket): void {
    socket.once("close", () => {
      this.counters.disconnected();
      this.release();
    });
  }

  /** Ends an exchange; with `requests` the caller releases the reservation. */
  free(upstream: Upstream, keep_ms: number): void {
    const unwanted = this.#withdrawn || keep_ms <= 0 || this.#idle.length >= PROXY_LIMITS.pooled;
    if (unwanted || this.#single.has(upstream)) {
      upstream.destroy();
      return;
    }
    upstream.keep_until = this.#context.now() + keep_ms;
    this.#context.slots.touch(this.table.slot, this.#context.shared_s());
    this.#rest(upstream);
    if (this.table.mode !== "connections") return;
    this.#room();
    // A request of another worker waits for this capacity.
    if (this.#idle.includes(upstream) && this.#context.slots.waiting(this.table.slot) > 0) upstream.destroy();
  }

  closed(upstream: Upstream): void {
    const at = this.#idle.indexOf(upstream);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#wake(upstream);
    this.counters.disconnected();
    if (this.table.mode === "connections") this.release();
  }

  /** Closes connections that were idle for too long. */
  sweep(): void {
    const now = this.#context.now();
    for (const upstream of this.#idle.filter(({ keep_until }) => keep_until <= now)) upstream.destroy();
  }

  /** Closes an idle connection, so that its capacity can be used by another worker. */
  yieldOne(): void {
    if (this.table.mode === "connections") this.#dropOne();
  }

  /** Accepts no more requests; those in progress continue. */
  retire(): void {
    this.#withdrawn = true;
    for (const upstream of this.#idle.splice(0)) upstream.destroy();
    this.#backend?.close();
  }

  /** Opens a stream on the HTTP/2 connection to the machine. */
  #takeStream(done: (line: UpstreamConnection | undefined, problem?: Error) => void): boolean {
    if (!this.acquire()) return false;
    this.#backend ??= new Http2Backend(this.endpoint, this.counters, () => this.#context.now());
    this.#backend.line((line, problem) => {
      if (!line) this.#refused();
      done(line, problem);
    });
    return true;
  }

  #refused(): void {
    const now = this.#context.now();
    this.#backoff_until = now + PROXY_LIMITS.retry_ms;
    if (now - this.#reported_at >= PROXY_LIMITS.listening_ms) {
      this.#reported_at = now;
      this.#context.unreachable(this.table);
    }
    this.release();
  }

  #unused(): Upstream | undefined {
    const now = this.#context.now();
    for (let upstream = this.#idle.pop(); upstream; upstream = this.#idle.pop()) {
      this.#wake(upstream);
      if (!upstream.closed && upstream.keep_until > now) return upstream;
      upstream.destroy();
    }
    return undefined;
  }

  #rest(upstream: Upstream): void {
    this.#idle.push(upstream);
    if (this.table.mode !== "connections") return;
    this.#resting.add(upstream);
    this.#context.slots.rest(this.table.slot, this.#context.worker, 1);
  }

  #wake(upstream: Upstream): void {
    if (this.#resting.delete(upstream)) this.#context.slots.rest(this.table.slot, this.#context.worker, -1);
  }

  #dropOne(): boolean {
    const oldest = this.#idle[0];
    oldest?.destroy();
    return oldest !== undefined;
  }

  #room(): void {
    for (const notify of this.onRoom) notify();
  }
}
