/**
 * Checkpoints SQLite's WALs in a thread of its own: with a long WAL, after a snapshot for example, that takes seconds,
 * in which this process must continue to capture, apply and send heartbeats. It needs no lock that applications wait
 * for. The short last part, which does, is not done here.
 */
import { Worker } from "node:worker_threads";
import { REPLICATION_LIMITS } from "../limits.ts";

export interface BulkCheckpointer {
  /** Checkpoints what is possible. Resolves when done, complete or not. */
  run(path: string): Promise<void>;
  /** Returns when the thread no longer uses the database. */
  settle(path: string): void;
}

const IDLE = 0;
const BUSY = 1;
/** A thread that has not finished by then hangs. */
const SETTLE_MS = 60_000;

export class CheckpointThread implements BulkCheckpointer {
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  readonly #idle_ms: number;
  /** Checkpoints in progress: the shared flag that the thread changes, and the callback at the end. */
  readonly #running = new Map<string, { flag: Int32Array; done: () => void }>();

  constructor(idle_ms: number = REPLICATION_LIMITS.checkpoint_thread_ms) {
    this.#idle_ms = idle_ms;
  }

  async run(path: string): Promise<void> {
    if (this.#running.has(path)) return;
    const flag = new Int32Array(new SharedArrayBuffer(4));
    flag[0] = BUSY;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#running.set(path, { flag, done: resolve });
    clearTimeout(this.#idle);
    this.#thread().postMessage({ path, flag });
    await promise;
  }

  settle(path: string): void {
    const running = this.#running.get(path);
    if (running) Atomics.wait(running.flag, 0, BUSY, SETTLE_MS);
  }

  /** True while there is a thread. */
  get runs(): boolean {
    return this.#worker !== undefined;
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    for (const path of this.#running.keys()) this.settle(path);
    await this.#worker?.terminate();
  }

  #thread(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(new URL("./checkpoint-thread.ts", import.meta.url));
    // Must not keep the process alive.
    worker.unref();
    worker.on("message", (path: string) => this.#ended(path));
    worker.on("error", () => {
      // Without it checkpoints are done synchronously, more slowly. The next one starts a new thread.
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
    Atomics.store(running.flag, 0, IDLE);
    running.done();
    if (this.#running.size === 0) this.#endWhenIdle();
  }

  #endWhenIdle(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      const worker = this.#worker;
      // The next one starts a new thread.
      this.#worker = undefined;
      void worker?.terminate();
    }, this.#idle_ms).unref();
  }
}
