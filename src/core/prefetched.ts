import { AsyncLocalStorage } from "node:async_hooks";
import { isDeepStrictEqual } from "node:util";

export type Keep = (kind: string, key: string, value: unknown) => void;
type Kept = Map<string, unknown[]>;

/** A completed read. `found` is compared with the result of the next read. */
interface Reading {
  found: unknown;
  keepAll(keep: Keep): void;
}

/** The cached rows of the last such request, and the function that updates them. */
export interface Recollection {
  last: Reading | undefined;
  remember(reading: Reading): void;
}

/** A request was handled on cached rows that have changed since. */
export class StaleRowsError extends Error {
  override readonly name = "StaleRowsError";
}

/**
 * Rows that a request will need, read in one round trip when it starts. Each is used once, by that request, before it
 * writes anything: a second lookup reads again.
 *
 * With a recollection the request starts with the cached rows, so that its own reads are sent at the same time.
 * `confirm` then checks that they are unchanged.
 */
export class Prefetched {
  #kept: Kept = new Map();
  #is_over = false;
  #last: Reading | undefined;
  readonly #recollection: Recollection | undefined;
  readonly #arrived: Promise<Reading>;

  /** A failure of `read` is a failure of the lookup. */
  constructor(read: () => Promise<Reading>, recollection?: Recollection) {
    this.#recollection = recollection;
    this.#last = recollection?.last;
    if (this.#last) this.#keep(this.#last);
    this.#arrived = read().then((reading) => {
      if (!this.#last) this.#keep(reading);
      return reading;
    });
    // Without a lookup the rejection would be unhandled; a lookup reports it.
    this.#arrived.catch(() => {});
  }

  async take(kind: string, key: string): Promise<unknown> {
    if (!this.#last) await this.#arrived;
    return this.#kept.get(`${kind} ${key}`)?.shift();
  }

  /**
   * Whether the request was handled on rows that were read since it started. If not, it must be handled again, with
   * those rows.
   */
  async confirm(): Promise<boolean> {
    const last = this.#last;
    if (!last) return true;
    const reading = await this.#arrived;
    this.#last = undefined;
    if (isDeepStrictEqual(last.found, reading.found)) return true;
    this.#keep(reading);
    return false;
  }

  /** Caches these rows for the next such request. */
  async remember(): Promise<void> {
    if (this.#recollection) this.#recollection.remember(await this.#arrived);
  }

  clear(): void {
    this.#is_over = true;
    this.#kept.clear();
  }

  #keep({ keepAll }: Reading): void {
    const kept: Kept = new Map();
    if (!this.#is_over)
      keepAll((kind, key, value) => {
        const name = `${kind} ${key}`;
        kept.set(name, [...(kept.get(name) ?? []), value]);
      });
    this.#kept = kept;
  }
}

const current = new AsyncLocalStorage<Prefetched>();

/**
 * Runs `work` with the prefetched rows; they are discarded afterwards, also for work that is still running. A result on
 * changed rows, even a refusal, is discarded and `work` runs again.
 */
export async function withPrefetched<T>(prefetched: Prefetched, work: () => Promise<T>): Promise<T> {
  try {
    return await current.run(prefetched, async () => {
      try {
        return await work();
      } catch (thrown) {
        if (!(thrown instanceof StaleRowsError) && (await prefetched.confirm())) throw thrown;
        return await work();
      }
    });
  } finally {
    prefetched.clear();
  }
}

/** To be called before the response: the request runs again when its rows have changed. */
export async function confirmPrefetched(): Promise<void> {
  const prefetched = current.getStore();
  if (!prefetched) return;
  if (!(await prefetched.confirm())) throw new StaleRowsError("rows of this request have changed");
  await prefetched.remember();
}

/** Takes a prefetched row of this request. */
export async function takePrefetched<T>(kind: string, key: string): Promise<T | undefined> {
  return (await current.getStore()?.take(kind, key)) as T | undefined;
}

/** Discards prefetched rows: after a write, and where rows from now on are needed. */
export function forgetPrefetched(): void {
  current.getStore()?.clear();
}
