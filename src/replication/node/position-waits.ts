/** Requests that wait until something is true of a database: a transaction is here, or replicas have it. */
import { fail } from "#core/errors.ts";
import { REPLICATION_LIMITS } from "../limits.ts";

export class PositionWaits {
  readonly #waiting = new Map<string, Set<() => void>>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Something of this database, or of all, changed. */
  notify(name?: string): void {
    const looks = name === undefined ? [...this.#waiting.values()].flatMap((set) => [...set]) : this.#waiting.get(name);
    // A copy, because expired waits are removed.
    for (const check of Array.from(looks ?? [])) check();
  }

  /** True as soon as `reached` is; false after `ms`, or when aborted. */
  async until(name: string, reached: () => boolean, ms: number, signal?: AbortSignal): Promise<boolean> {
    if (reached()) return true;
    if (this.#count >= REPLICATION_LIMITS.waits) {
      fail("overloaded", `waits: ${REPLICATION_LIMITS.waits} requests wait already`, { retry_after_s: 1 });
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const check = (): void => {
      if (reached()) resolve(true);
    };
    const giveUp = (): void => resolve(false);
    const timer = setTimeout(giveUp, ms);
    signal?.addEventListener("abort", giveUp, { once: true });
    const looks = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, looks.add(check));
    this.#count++;
    try {
      return await promise;
    } finally {
      this.#count--;
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
      looks.delete(check);
      if (looks.size === 0) this.#waiting.delete(name);
    }
  }
}
