import { AsyncLocalStorage } from "node:async_hooks";
import { isDeepStrictEqual } from "node:util";

export type Keep = (kind: string, key: string, value: unknown) => void;
type Kept = Map<string, unknown[]>;

/** Reads rows and keeps them. `found` is what it read, to be compared with what it reads the next time. */
interface Reading {
  found: unknown;
  keepAll(keep: Keep): void;
}

/** What the same request found the last time, and where to put what it finds now. */
export interface Recollection {
  last: Reading | undefined;
  remember(reading: Reading): void;
}

/** A request was decided on rows of the last time, which have changed since. */
export class StaleRowsError extends Error {
  override readonly name = "StaleRowsError";
}

/**
 * Rows that a request will need, read in one round trip when it begins. Each is used once, by that request, before it
 * writes anything: a second lookup reads again.
 *
 * With a recollection the request begins with the rows of the last time, so that what it reads itself is sent at the
 * same moment. `confirm` then says whether they still are the same.
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
    // Without a lookup nobody handles the failure; a lookup reports it.
    this.#arrived.catch(() => {});
  }

  async take(kind: string, key: string): Promise<unknown> {
    if (!this.#last) await this.#arrived;
    return this.#kept.get(`${kind} ${key}`)?.shift();
  }

  /**
   * Whether the request was decided on rows that were read since it began. If not, it has to be decided again, and
   * takes those rows then.
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

  /** The next request like this one may begin with these rows. */
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
 * Runs `work` with the prefetched rows; they are discarded afterwards, also for what it left running. What was decided
 * on rows that have changed, be it a refusal, is decided again.
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

/** To be called before anything is told: the request begins again when its rows have changed. */
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
