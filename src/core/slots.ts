/** Limits concurrency; further calls wait in a queue. */
export class Slots {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#busy >= this.#limit) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    } else {
      this.#busy++;
    }
    try {
      return await work();
    } finally {
      // The slot is handed over directly, so that no later caller overtakes.
      const first = this.#waiting.shift();
      if (first) first();
      else this.#busy--;
    }
  }
}
