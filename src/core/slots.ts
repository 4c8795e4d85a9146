/** Limits concurrency; further calls wait in a queue. */
export class Slots {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** With a signal, a call that still waits leaves the queue when it is aborted, with its reason. */
  async use<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#busy >= this.#limit) await this.#wait(signal);
    else this.#busy++;
    try {
      return await work();
    } finally {
      // The slot is handed over directly, so that no later caller overtakes.
      const first = this.#waiting.shift();
      if (first) first();
      else this.#busy--;
    }
  }

  async #wait(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(signal?.reason as Error);
      };
      const enter = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.push(enter);
    });
  }
}
