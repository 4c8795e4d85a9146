/**
 * One thing at a time per volume: a machine does not mount what is just being copied or resized. In this
 * process is enough, because one process looks after a host.
 */
export class Locks {
  readonly #tails = new Map<string, Promise<void>>();

  /** Runs `work` exclusively for these ids; locks are taken in one order, to avoid deadlocks. */
  async with<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    const [first, ...rest] = [...new Set(ids)].sort();
    if (first === undefined) return await work();
    const before = this.#tails.get(first) ?? Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const tail = before.then(() => promise);
    this.#tails.set(first, tail);
    await before;
    try {
      return await this.with(rest, work);
    } finally {
      resolve();
      if (this.#tails.get(first) === tail) this.#tails.delete(first);
    }
  }
}
