/**
 * Copies SQLite's logs back into their databases in a thread of its own: with a long log, after a snapshot for example,
 * that takes seconds, in which this process must go on capturing, applying and saying that it is alive. It needs no
 * lock that applications wait for. The short end of it, which does, is not done here.
 */
import { Worker } from "node:worker_threads";

export interface BulkCheckpointer {
  /** Copies back what can be. Resolves when it is done, whether or not all of it could be. */
  run(path: string): Promise<void>;
  /** Returns when nothing here uses the database any more. */
  settle(path: string): void;
}

const IDLE = 0;
const BUSY = 1;
/** A thread that has not finished by then never will. */
const SETTLE_MS = 60_000;

export class CheckpointThread implements BulkCheckpointer {
  #worker: Worker | undefined;
  /** What each database in work waits for: a word the thread changes, and who is told. */
  readonly #running = new Map<string, { word: Int32Array; done: () => void }>();

  async run(path: string): Promise<void> {
    if (this.#running.has(path)) return;
    const word = new Int32Array(new SharedArrayBuffer(4));
    word[0] = BUSY;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#running.set(path, { word, done: resolve });
    this.#thread().postMessage({ path, word });
    await promise;
  }

  settle(path: string): void {
    const running = this.#running.get(path);
    if (running) Atomics.wait(running.word, 0, BUSY, SETTLE_MS);
  }

  async close(): Promise<void> {
    for (const path of this.#running.keys()) this.settle(path);
    await this.#worker?.terminate();
  }

  #thread(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(new URL("./checkpoint-thread.ts", import.meta.url));
    // It must not keep the process from ending.
    worker.unref();
    worker.on("message", (path: string) => this.#ended(path));
    worker.on("error", () => {
      // Without it the logs are copied back in one piece at the end, only slower. The next one starts a new thread.
      this.#worker = undefined;
      for (const path of this.#running.keys()) this.#ended(path);
    });
    this.#worker = worker;
    return worker;
  }

  #ended(path: string): void {
    const running = this.#running.get(path);
    this.#running.delete(path);
    if (!running) return;
    Atomics.store(running.word, 0, IDLE);
    running.done();
  }
}
