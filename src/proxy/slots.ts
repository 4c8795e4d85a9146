import { PROXY_LIMITS } from "./limits.ts";

/**
 * How much each service of each machine is doing, in memory that all workers and the control share. A *slot*
 * is one service of one machine. `load` is what the hard limit bounds, so it is only ever raised together with
 * the comparison; `own` says how much of it is whose, so that a worker that dies takes back what it held. `unused` are
 * the connections in the load that carry nothing at the moment: in all, and by worker.
 */
export class Slots {
  static readonly BYTES = 4 * (PROXY_LIMITS.slots * (6 + 2 * PROXY_LIMITS.workers) + 1);
  readonly buffer: SharedArrayBuffer;
  readonly #load: Int32Array;
  readonly #waiting: Int32Array;
  /** When it was last busy, in seconds of the monotonic clock that all threads share. */
  readonly #active: Int32Array;
  /** The number of the pick that chose it last. */
  readonly #picked: Int32Array;
  readonly #unusedInAll: Int32Array;
  /** The most that its service had in use at once, on all machines together. */
  readonly #peak: Int32Array;
  readonly #own: Int32Array[];
  readonly #unused: Int32Array[];
  /** How many picks there were, in all workers together. */
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

  /** Of the load, what is in use. */
  inUse(slot: number): number {
    return Math.max(0, this.load(slot) - Atomics.load(this.#unusedInAll, slot));
  }

  /** So many more connections of the worker are open and unused, or fewer. */
  rest(slot: number, worker: number, by: number): void {
    Atomics.add(this.#unused[worker] as Int32Array, slot, by);
    Atomics.add(this.#unusedInAll, slot, by);
  }

  /** The load balancer of any worker chose it. */
  pick(slot: number): void {
    Atomics.store(this.#picked, slot, Atomics.add(this.#picks, 0, 1) + 1);
  }

  /** Whether it was picked longer ago than the other one; right across the wrap of the count at 32 bits. */
  pickedBefore(slot: number, other: number): boolean {
    return ((Atomics.load(this.#picked, slot) - Atomics.load(this.#picked, other)) | 0) < 0;
  }

  /** So much was in use at once. Two workers at the same moment may lose the smaller figure, or a figure by one. */
  recordPeak(slot: number, in_use: number): void {
    if (Atomics.load(this.#peak, slot) < in_use) Atomics.store(this.#peak, slot, in_use);
  }

  /** The most that was recorded since the last call. */
  takePeak(slot: number): number {
    return Atomics.exchange(this.#peak, slot, 0);
  }

  waiting(slot: number): number {
    return Atomics.load(this.#waiting, slot);
  }

  activeAt(slot: number): number {
    return Atomics.load(this.#active, slot);
  }

  /** One more, unless that would pass `hard`. */
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

  /** The worker is gone: what it held is free again. */
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
    // Nobody knows how many it had waiting; the others count theirs on from here, and less than none is none.
    this.#waiting.fill(0);
  }

  /** For a slot that is given to another service. */
  reset(slot: number, now_s: number): void {
    Atomics.store(this.#load, slot, 0);
    Atomics.store(this.#waiting, slot, 0);
    Atomics.store(this.#active, slot, now_s);
    Atomics.store(this.#peak, slot, 0);
  }
}
