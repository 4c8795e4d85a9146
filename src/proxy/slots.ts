import { PROXY_LIMITS } from "./limits.ts";

/**
 * Load of each service of each machine, in memory shared by all workers and the control thread. A *slot* is one service
 * of one machine. `load` is bounded by the hard limit, so it is only raised by compare-and-swap; `own` is each worker's
 * part, which is subtracted when that worker dies. `unused` counts the idle connections in the load: in total, and by
 * worker.
 */
export class Slots {
  static readonly BYTES = 4 * (PROXY_LIMITS.slots * (6 + 2 * PROXY_LIMITS.workers) + 1);
  readonly buffer: SharedArrayBuffer;
  readonly #load: Int32Array;
  readonly #waiting: Int32Array;
  /** Last activity, in seconds of the shared monotonic clock. */
  readonly #active: Int32Array;
  /** Sequence number of the last pick. */
  readonly #picked: Int32Array;
  readonly #unusedInAll: Int32Array;
  /** Peak concurrency of its service, on all machines together. */
  readonly #peak: Int32Array;
  readonly #own: Int32Array[];
  readonly #unused: Int32Array[];
  /** Number of picks in all workers. */
  readonly #picks: Int32Array;

  constructor(buffer = new SharedArrayBuffer(Slots.BYTES)) {
    const { slots, workers } = PROXY_LIMITS;
    const column = (n: number): Int32Array => new Int32Array(buffer, 4 * n * slots, slots);
    this.buffer = buffer;
    this.#load = column(0);
    this.#waiting = column(1);
    this.#active = column(2);
    this.#picked = column(3);
    this.#unusedInAll = column(4);
    this.#peak = column(5);
    this.#own = Array.from({ length: workers }, (_, worker) => column(6 + worker));
    this.#unused = Array.from({ length: workers }, (_, worker) => column(6 + workers + worker));
    this.#picks = new Int32Array(buffer, 4 * (6 + 2 * workers) * slots, 1);
  }

  load(slot: number): number {
    return Atomics.load(this.#load, slot);
  }

  /** The part of the load that is in use. */
  inUse(slot: number): number {
    return Math.max(0, this.load(slot) - Atomics.load(this.#unusedInAll, slot));
  }

  /** Changes the worker's number of idle connections. */
  rest(slot: number, worker: number, by: number): void {
    Atomics.add(this.#unused[worker] as Int32Array, slot, by);
    Atomics.add(this.#unusedInAll, slot, by);
  }

  /** Records that a load balancer chose it. */
  pick(slot: number): void {
    Atomics.store(this.#picked, slot, Atomics.add(this.#picks, 0, 1) + 1);
  }

  /** Whether it was picked before the other one; correct across the 32-bit wrap. */
  pickedBefore(slot: number, other: number): boolean {
    return ((Atomics.load(this.#picked, slot) - Atomics.load(this.#picked, other)) | 0) < 0;
  }

  /** Records peak concurrency. Concurrent calls of two workers may lose the smaller value, or one count. */
  recordPeak(slot: number, in_use: number): void {
    if (Atomics.load(this.#peak, slot) < in_use) Atomics.store(this.#peak, slot, in_use);
  }

  /** Peak since the last call. */
  takePeak(slot: number): number {
    return Atomics.exchange(this.#peak, slot, 0);
  }

  waiting(slot: number): number {
    return Atomics.load(this.#waiting, slot);
  }

  activeAt(slot: number): number {
    return Atomics.load(this.#active, slot);
  }

  /** Adds one, unless that would exceed `hard`. */
  acquire(slot: number, hard: number, worker: number): boolean {
    for (;;) {
      const load = Atomics.load(this.#load, slot);
      if (load >= hard) return false;
      if (Atomics.compareExchange(this.#load, slot, load, load + 1) === load) break;
    }
    const own = this.#own[worker] as Int32Array;
    own[slot] = (own[slot] as number) + 1;
    return true;
  }

  release(slot: number, worker: number, now_s: number): void {
    const own = this.#own[worker] as Int32Array;
    own[slot] = (own[slot] as number) - 1;
    Atomics.sub(this.#load, slot, 1);
    Atomics.store(this.#active, slot, now_s);
  }

  touch(slot: number, now_s: number): void {
    Atomics.store(this.#active, slot, now_s);
  }

  wait(slot: number, by: number): void {
    Atomics.add(this.#waiting, slot, by);
  }

  /** Frees what a dead worker held. */
  forget(worker: number): void {
    const own = this.#own[worker] as Int32Array;
    const unused = this.#unused[worker] as Int32Array;
    for (let slot = 0; slot < own.length; slot++) {
      if (unused[slot] !== 0) Atomics.sub(this.#unusedInAll, slot, unused[slot] as number);
      unused[slot] = 0;
      if (own[slot] === 0) continue;
      Atomics.sub(this.#load, slot, own[slot] as number);
      own[slot] = 0;
    }
    // The dead worker's waiting count is unknown; the others continue from zero, and negative counts as zero.
    this.#waiting.fill(0);
  }

  /** For a slot that is reused by another service. */
  reset(slot: number, now_s: number): void {
    Atomics.store(this.#load, slot, 0);
    Atomics.store(this.#waiting, slot, 0);
    Atomics.store(this.#active, slot, now_s);
    Atomics.store(this.#peak, slot, 0);
  }
}
