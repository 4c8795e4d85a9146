import { AsyncLocalStorage } from "node:async_hooks";

/**
 * What a request is going to look up, read in one round trip when it begins. Each reading is used once, by the request
 * that asked for it, and before anything is written: whoever looks a second time reads anew.
 */
export class Prefetched {
  readonly #kept = new Map<string, unknown[]>();
  readonly #arrived: Promise<void>;

  /** `fill` puts what was read. When it fails, so does the lookup. */
  constructor(fill: (keep: (kind: string, key: string, value: unknown) => void) => Promise<void>) {
    this.#arrived = fill((kind, key, value) => {
      const name = `${kind} ${key}`;
      this.#kept.set(name, [...(this.#kept.get(name) ?? []), value]);
    });
    // Nobody may ask for it; whoever does sees the failure.
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

/** Runs `work` with what was read for it; afterwards, and for whatever it left running, there is nothing of it. */
export async function withPrefetched<T>(prefetched: Prefetched, work: () => Promise<T>): Promise<T> {
  try {
    return await current.run(prefetched, work);
  } finally {
    prefetched.clear();
  }
}

/** What was read for this request and not used yet. */
export async function takePrefetched<T>(kind: string, key: string): Promise<T | undefined> {
  return (await current.getStore()?.take(kind, key)) as T | undefined;
}

/** Something is written: what was read before is old. */
export function forgetPrefetched(): void {
  current.getStore()?.clear();
}
