/** Deduplicates concurrent calls, and limits concurrency. */
export class Once<T> {
  readonly #running = new Map<string, { work: Promise<T>; users: number; stop: AbortController }>();

  /**
   * Shares one run of `work` per key. Returns early for an aborted signal; the work is aborted when all callers have
   * left.
   */
  async do(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const running = this.#running.get(key) ?? this.#begin(key, work);
    running.users++;
    const left = Promise.withResolvers<never>();
    const leave = (): void => {
      left.reject(signal.reason);
      if (--running.users > 0) return;
      // Later callers start anew, because this run is being aborted.
      if (this.#running.get(key) === running) this.#running.delete(key);
      running.stop.abort(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([running.work, left.promise]);
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  #begin(
    key: string,
    work: (signal: AbortSignal) => Promise<T>,
  ): { work: Promise<T>; users: number; stop: AbortController } {
    const stop = new AbortController();
    const promise = work(stop.signal);
    const entry = { work: promise, users: 0, stop };
    this.#running.set(key, entry);
    const over = (): void => {
      if (this.#running.get(key) === entry) this.#running.delete(key);
    };
    promise.then(over, over);
    return entry;
  }
}

/** Limits concurrency; further callers wait in order. */
export class Mutex {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(parallel: number) {
    this.#free = parallel;
  }

  async acquire<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
