/**
 * Searches logs in threads, so that what is decompressed and compared holds up no request. They are started when they are
 * needed, and end when they were idle for a while; one whose search is cancelled ends at once.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { Slots } from "#core/slots.ts";
import type { LogFound, LogSearch } from "#machines/logs/search.ts";
import type { MachinePaths } from "../layout.ts";
import { RUNC_LIMITS } from "../limits.ts";
import { DamagedLog } from "./archived.ts";
import type { OnDamage } from "./files.ts";
import type { SearchResponse, SearchTask } from "./search-worker.ts";

const WORKER = new URL("./search-worker.ts", import.meta.url);

interface ThreadParts {
  paths(id: string): Pick<MachinePaths, "log" | "logs">;
  onDamage: OnDamage;
}

interface Idle {
  worker: Worker;
  end: NodeJS.Timeout;
}

export class SearchThreads {
  readonly #parts: ThreadParts;
  readonly #slots = new Slots(RUNC_LIMITS.log_search_threads);
  readonly #closing = new AbortController();
  readonly #running = new Set<Worker>();
  #idle: Idle[] = [];

  constructor(parts: ThreadParts) {
    this.#parts = parts;
  }

  /** Threads that are alive. */
  get threads(): number {
    return this.#running.size + this.#idle.length;
  }

  async search(search: LogSearch, cancel?: AbortSignal): Promise<LogFound> {
    const closing = this.#closing.signal;
    const signal = cancel ? AbortSignal.any([cancel, closing]) : closing;
    signal.throwIfAborted();
    return await this.#slots.use(() => this.#search(search, signal), signal);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("the platform is stopping"));
    const idle = this.#idle;
    this.#idle = [];
    for (const { end } of idle) clearTimeout(end);
    await Promise.all([...idle.map(({ worker }) => worker), ...this.#running].map((worker) => worker.terminate()));
  }

  async #search(search: LogSearch, signal: AbortSignal): Promise<LogFound> {
    signal.throwIfAborted();
    const worker = this.#take();
    const over = new AbortController();
    const until = AbortSignal.any([signal, over.signal]);
    let is_reusable = false;
    try {
      const paths = Object.fromEntries(
        search.ids.map((id) => {
          const { log, logs } = this.#parts.paths(id);
          return [id, { log, logs }];
        }),
      );
      worker.postMessage({ search, paths } satisfies SearchTask);
      const response = await Promise.race([
        once(worker, "message", { signal: until }).then(([message]) => message as SearchResponse),
        once(worker, "exit", { signal: until }).then((): SearchResponse => ({ failed: "its thread ended early" })),
      ]);
      is_reusable = true;
      return this.#understood(response);
    } catch (thrown) {
      signal.throwIfAborted();
      throw thrown;
    } finally {
      over.abort();
      this.#running.delete(worker);
      if (is_reusable && !signal.aborted) this.#giveBack(worker);
      else await worker.terminate();
    }
  }

  #understood(response: SearchResponse): LogFound {
    if ("failed" in response) {
      const { failed, code } = response;
      throw Object.assign(new Error(`the search in logs failed: ${failed}`), code === undefined ? {} : { code });
    }
    for (const { file, message } of response.damage) this.#parts.onDamage(file, new DamagedLog(message));
    return response.found;
  }

  #take(): Worker {
    const idle = this.#idle.pop();
    if (idle) clearTimeout(idle.end);
    const worker =
      idle?.worker ??
      new Worker(WORKER, {
        name: "log-search",
        resourceLimits: { maxOldGenerationSizeMb: RUNC_LIMITS.log_search_heap_mb },
      });
    worker.ref();
    this.#running.add(worker);
    return worker;
  }

  /** Neither the thread nor its timer keeps the process alive. */
  #giveBack(worker: Worker): void {
    worker.unref();
    const end = setTimeout(() => {
      this.#idle = this.#idle.filter((one) => one.worker !== worker);
      void worker.terminate();
    }, RUNC_LIMITS.log_search_idle_ms).unref();
    this.#idle.push({ worker, end });
  }
}
