/**
 * Notices writes to the WALs of databases as they happen (inotify). A commit itself is not a write: with synchronous =
 * FULL an application writes the frames, syncs them, and only then changes the index, which is memory that it has
 * mapped. So after a write the index is looked at every millisecond, for as long as a commit may follow. Where the
 * kernel reports nothing, databases are looked at now and then, as all are.
 */
import { type FSWatcher, watch } from "node:fs";
import { REPLICATION_LIMITS } from "../limits.ts";

/** A database whose applications write. */
export interface Written {
  readonly path: string;
  /** True when something was committed that is not captured yet. */
  readonly has_uncaptured: boolean;
}

export class WriteWatch<T extends Written> {
  /** Undefined: the kernel cannot report this one. */
  readonly #watchers = new Map<T, FSWatcher | undefined>();
  /** Those that were written to, and until when, by the monotonic clock, a commit may follow. */
  readonly #written = new Map<T, number>();
  #wake: () => void = () => undefined;

  /** Watches these, and no others any more. */
  follow(databases: Iterable<T>): void {
    const removed = new Set(this.#watchers.keys());
    for (const database of databases) {
      removed.delete(database);
      if (!this.#watchers.has(database)) this.#watchers.set(database, this.#watch(database));
    }
    for (const database of removed) this.#forget(database);
  }

  /** True when nothing was written lately, and every write will be noticed. */
  get quiet(): boolean {
    return this.#written.size === 0 && ![...this.#watchers.values()].includes(undefined);
  }

  /** True when something was committed to one of those that were written to. */
  committed(now_ms: number): boolean {
    for (const [database, until_ms] of this.#written) {
      if (database.has_uncaptured) return true;
      if (now_ms > until_ms) this.#written.delete(database);
    }
    return false;
  }

  /** Resolves when one of them is written to, at most after this time: sooner when a commit is expected. */
  async pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const expected = this.#written.size > 0;
    const timer = setTimeout(resolve, expected ? REPLICATION_LIMITS.commit_look_ms : ms).unref();
    // While a commit is expected, further frames of it are no news.
    if (!expected) this.#wake = resolve;
    await promise;
    clearTimeout(timer);
    this.#wake = () => undefined;
  }

  close(): void {
    this.follow([]);
  }

  #watch(database: T): FSWatcher | undefined {
    try {
      const watcher = watch(`${database.path}-wal`, { persistent: false }, () => this.#onWrite(database));
      watcher.on("error", () => {
        watcher.close();
        this.#watchers.set(database, undefined);
      });
      return watcher;
    } catch {
      // The limit of watches is reached (fs.inotify.max_user_watches), or the file was removed.
      return undefined;
    }
  }

  #onWrite(database: T): void {
    this.#written.set(database, performance.now() + REPLICATION_LIMITS.commit_expected_ms);
    this.#wake();
  }

  #forget(database: T): void {
    this.#watchers.get(database)?.close();
    this.#watchers.delete(database);
    this.#written.delete(database);
  }
}
