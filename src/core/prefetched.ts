import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Rows that a request will need, read in one round trip when it begins. Each is used once, by that request, before it
 * writes anything: a second lookup reads again.
 */
export class Prefetched {
  readonly #kept = new Map<string, unknown[]>();
  readonly #arrived: Promise<void>;

  /** `fill` stores what was read. Its failure is a failure of the lookup. */
  constructor(fill: (keep: (kind: string, key: string, value: unknown) => void) => Promise<void>) {
    this.#arrived = fill((kind, key, value) => {
      const name = `${kind} ${key}`;
      this.#kept.set(name, [...(this.#kept.get(name) ?? []), value]);
    });
    // Without a lookup nobody handles the failure; a lookup reports it.
    this.#arrived.catch(() => {});
  }

  async take(kind: string, key: string): Promise<unknown> {
    await this.#arrived;
    return this.#kept.get(`${kind} ${key}`)?.shift();
  }

  clear(): void {
    this.#kept.clear();
  }
}

const current = new AsyncLocalStorage<Prefetched>();

/** Runs `work` with the prefetched rows; they are discarded afterwards, also for what it left running. */
export async function withPrefetched<T>(prefetched: Prefetched, work: () => Promise<T>): Promise<T> {
  try {
    return await current.run(prefetched, work);
  } finally {
    prefetched.clear();
  }
}

/** Takes a prefetched row of this request. */
export async function takePrefetched<T>(kind: string, key: string): Promise<T | undefined> {
  return (await current.getStore()?.take(kind, key)) as T | undefined;
}

/** Discards prefetched rows after a write. */
export function forgetPrefetched(): void {
  current.getStore()?.clear();
}
