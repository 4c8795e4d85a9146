import { Worker } from "node:worker_threads";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { holdFolder } from "../folder-lock.ts";
import type { TsdbLimits } from "../tsdb/limits.ts";
import { ENGINE_LIMITS, type EngineLimits } from "./limits.ts";
import type { Calls, CrossedError, Method, Reply, WorkerSettings } from "./protocol.ts";

export interface EngineOptions {
  dir: string;
  /** For durations; the worker has its own wall clock. */
  clock: Clock;
  /** Limits of the database by name. */
  limits?: Partial<TsdbLimits>;
  engine_limits?: Partial<EngineLimits>;
  /** Added to the worker's wall clock. */
  clock_offset_ms?: number;
  /** Module that exports an `evaluator`. */
  evaluator_url?: string;
  /** Called when the worker crashed. */
  onCrash?(error: Error): void;
}

/** An error of the evaluator in the worker. */
export class QueryFailure extends Error {
  override readonly name = "QueryFailure";
  /** Its class name in the worker. */
  readonly kind: string;
  readonly details: unknown;

  constructor({ name, message, details }: CrossedError) {
    super(message);
    this.kind = name;
    this.details = details;
  }
}

const WRITES: ReadonlySet<Method> = new Set(["append", "importTexts", "importRemoteWrite", "endTarget"]);

interface Pending {
  method: Method;
  bytes: number;
  flag: number;
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/**
 * The connection to the metrics worker. Calls begin in order; one that exceeds its queue is refused at once
 * (`overloaded`); a crashed worker is restarted. Buffers with memory of their own are transferred, and empty
 * afterwards.
 */
export class WorkerLink {
  readonly #options: EngineOptions;
  readonly #limits: EngineLimits;
  readonly #flags: Int32Array;
  readonly #freeFlags: number[];
  readonly #pending = new Map<number, Pending>();
  /** Undefined before the first start. */
  #worker: Worker | undefined;
  #lock: { release(): void } | undefined;
  #nextId = 1;
  readonly #queued = { writes: 0, write_bytes: 0, questions: 0 };
  readonly #crashes: number[] = [];
  #closing = false;
  /** Why there is no worker any more. */
  #down: Error | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#limits = { ...ENGINE_LIMITS, ...options.engine_limits };
    // Flag 0 is never set: it belongs to calls that cannot be cancelled.
    const flags = this.#limits.questions_queued + 1;
    this.#flags = new Int32Array(new SharedArrayBuffer(4 * flags));
    this.#freeFlags = Array.from({ length: flags - 1 }, (_, i) => i + 1);
    try {
      this.#lock = holdFolder(options.dir);
      this.#worker = this.#start();
    } catch (thrown) {
      this.#down = thrown instanceof Error ? thrown : new Error(String(thrown));
    }
  }

  /** Calls a method of the worker; see `Calls`. */
  async call<M extends Method>(method: M, args: Calls[M]["args"], signal?: AbortSignal): Promise<Calls[M]["answer"]> {
    if (this.#down) fail("storage_failed", `the metrics engine is down: ${this.#down.message}`, { cause: this.#down });
    if (this.#closing) fail("shutting_down", "the metrics engine is stopping");
    if (signal?.aborted) throw abortError(signal);
    const transfer = buffersOf(args);
    const bytes = transfer.reduce((sum, buffer) => sum + buffer.byteLength, 0);
    this.#admit(method, bytes);
    const flag = WRITES.has(method) ? 0 : (this.#freeFlags.pop() ?? 0);
    if (flag > 0) this.#flags[flag] = 0;
    const id = this.#nextId++;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { method, bytes, flag, resolve, reject });
    });
    const onAbort = (): void => {
      if (flag > 0) Atomics.store(this.#flags, flag, 1);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      this.#worker?.postMessage({ id, method, args, flag }, transfer);
      return (await answer) as Calls[M]["answer"];
    } catch (thrown) {
      if (signal?.aborted) throw abortError(signal);
      throw thrown;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      this.#settle(id);
    }
  }

  /** Closes after everything appended is durable. */
  async close(): Promise<void> {
    if (this.#closing) return;
    const closed = this.#down ? Promise.resolve() : this.call("close", []);
    this.#closing = true;
    try {
      await closed;
    } finally {
      await this.#worker?.terminate();
      this.#lock?.release();
    }
  }

  #admit(method: Method, bytes: number): void {
    const { writes_queued, write_bytes_queued, questions_queued } = this.#limits;
    const queued = this.#queued;
    if (!WRITES.has(method)) {
      // Closing ignores the queue limit: a refusal would end the worker before data is durable.
      if (method !== "close" && queued.questions >= questions_queued) overloaded("questions_queued", questions_queued);
      queued.questions++;
      return;
    }
    if (queued.writes >= writes_queued) overloaded("writes_queued", writes_queued);
    if (queued.write_bytes + bytes > write_bytes_queued && queued.writes > 0) {
      overloaded("write_bytes_queued", write_bytes_queued);
    }
    queued.writes++;
    queued.write_bytes += bytes;
  }

  #settle(id: number): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    if (pending.flag > 0) this.#freeFlags.push(pending.flag);
    if (WRITES.has(pending.method)) {
      this.#queued.writes--;
      this.#queued.write_bytes -= pending.bytes;
    } else this.#queued.questions--;
  }

  #start(): Worker {
    const { dir, limits = {}, clock_offset_ms = 0, evaluator_url } = this.#options;
    const settings: WorkerSettings = {
      dir,
      limits,
      clock_offset_ms,
      maintain_ms: this.#limits.maintain_ms,
      evaluator_url: evaluator_url ?? new URL("./evaluator.ts", import.meta.url).href,
      flags: this.#flags.buffer as SharedArrayBuffer,
    };
    const worker = new Worker(new URL("./worker.ts", import.meta.url), {
      workerData: settings,
      resourceLimits: {
        maxOldGenerationSizeMb: this.#limits.heap_mib,
        maxYoungGenerationSizeMb: this.#limits.young_heap_mib,
      },
    });
    let cause: Error | undefined;
    worker.on("message", (reply: Reply) => this.#answer(reply));
    worker.on("error", (error: unknown) => {
      cause = error instanceof Error ? error : new Error(String(error));
    });
    worker.on("exit", (code) => {
      if (worker === this.#worker) this.#ended(cause ?? new Error(`the metrics worker ended with code ${code}`));
    });
    return worker;
  }

  #answer(reply: Reply): void {
    const pending = this.#pending.get(reply.id);
    if (!pending) return;
    if ("error" in reply) pending.reject(toError(reply.error));
    else pending.resolve(reply.answer);
  }

  /** Rejects pending calls; the next worker replays the WAL. */
  #ended(cause: Error): void {
    const message = `the metrics engine stopped unexpectedly: ${cause.message}`;
    for (const { reject } of this.#pending.values()) reject(new ApiError("storage_failed", message, { cause }));
    if (this.#closing) return;
    this.#options.onCrash?.(cause);
    const now = this.#options.clock.monotonic();
    this.#crashes.push(now);
    while (this.#crashes[0] !== undefined && now - this.#crashes[0] > this.#limits.restart_span_ms) {
      this.#crashes.shift();
    }
    if (this.#crashes.length > this.#limits.restarts) this.#down = cause;
    else this.#worker = this.#start();
  }
}

function overloaded(limit: keyof EngineLimits, value: number): never {
  fail("overloaded", `the metrics engine is overloaded (${limit} is ${value})`, { retry_after_s: 1 });
}

function abortError(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("cancelled");
}

/** Maps the worker's errors to those that a caller can act on. */
export function toError(error: CrossedError): Error {
  if (error.name === "StorageError") {
    return new ApiError(error.full === true ? "storage_full" : "storage_failed", error.message);
  }
  if (error.name === "BadWire") return new ApiError("invalid_request", error.message);
  return new QueryFailure(error);
}

/** Transferable buffers: bodies and batches with memory of their own, not slices of a pool. */
function buffersOf(args: readonly unknown[]): ArrayBuffer[] {
  const found = new Set<ArrayBuffer>();
  const visit = (value: unknown): void => {
    if (ArrayBuffer.isView(value)) {
      const { buffer } = value;
      if (buffer instanceof ArrayBuffer && buffer.byteLength === value.byteLength) found.add(buffer);
    } else if (typeof value === "object" && value !== null) Object.values(value).forEach(visit);
  };
  args.forEach(visit);
  return [...found];
}
