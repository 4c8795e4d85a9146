import { compressSync } from "snappy";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { RemoteAddress } from "./address.ts";
import { REMOTE_LIMITS } from "./limits.ts";
import { DiskQueue } from "./queue.ts";

interface Parts {
  dir: string;
  address: RemoteAddress;
  clock: Clock;
  log: Log;
}

/**
 * Sends samples to the engine by remote write, through a queue on disk: an outage of hours only delays them, as long as
 * the queue has room.
 */
export class Sender {
  readonly #parts: Parts;
  readonly #queue: DiskQueue;
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  #synced: Promise<void> | undefined;
  /** Why the engine does not accept samples at present. */
  failure: string | undefined;
  /** Bytes the engine refused for good. */
  refused_bytes = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#queue = new DiskQueue(parts.dir);
    if (this.#queue.bytes > 0) this.#wake();
  }

  get queued_bytes(): number {
    return this.#queue.bytes;
  }

  get dropped_bytes(): number {
    return this.#queue.dropped_bytes + this.refused_bytes;
  }

  /** Series of a write request, for one tenant. Throws StorageError. */
  put(tenant: number, series: Uint8Array): void {
    const { dropped_bytes } = this.#queue;
    this.#queue.put(tenant, series);
    const lost_bytes = this.#queue.dropped_bytes - dropped_bytes;
    if (lost_bytes > 0)
      this.#parts.log.error({ lost_bytes }, "the queue for the metrics engine is full: its oldest samples are lost");
    this.#wake();
    this.#synced ??= this.#syncSoon();
  }

  /** Resolves when everything added before is durable. */
  sync(): void {
    this.#queue.sync();
  }

  /** Resolves when the engine has everything that was added before; rejects when it does not accept it. */
  async drained(): Promise<void> {
    await this.#running;
    if (this.#queue.bytes > 0) throw new Error(this.failure ?? "the sender was stopped");
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    await this.#synced;
    this.#queue.close();
  }

  #wake(): void {
    this.#running ??= this.#send().finally(() => {
      this.#running = undefined;
      // Added after the last check of the queue: nothing else would send it before the next sample.
      if (this.#queue.bytes > 0 && !this.#closing.signal.aborted) this.#wake();
    });
  }

  async #syncSoon(): Promise<void> {
    await this.#parts.clock.sleep(1000, this.#closing.signal).catch(() => undefined);
    this.#synced = undefined;
    try {
      this.#queue.sync();
    } catch (error) {
      this.#parts.log.error({ error }, "samples for the metrics engine may be lost at a power cut");
    }
  }

  /** Sends until the queue is empty, with back-off while the engine accepts nothing. */
  async #send(): Promise<void> {
    const { signal } = this.#closing;
    let wait: number = REMOTE_LIMITS.gather_ms;
    while (!signal.aborted) {
      await this.#parts.clock.sleep(wait, signal).catch(() => undefined);
      if (await this.#sendAll()) return;
      wait = Math.min(Math.max(wait * 2, REMOTE_LIMITS.retry_ms), REMOTE_LIMITS.retry_most_ms);
    }
  }

  /** Returns false when it must be retried. */
  async #sendAll(): Promise<boolean> {
    const { log } = this.#parts;
    const { signal } = this.#closing;
    try {
      while (!signal.aborted && (await this.#sendOne()));
      if (this.failure) log.info({}, "the metrics engine takes samples again");
      this.failure = undefined;
      return true;
    } catch (error) {
      if (!this.failure && !signal.aborted) {
        log.warn({ error }, "the metrics engine takes no samples; they wait on the disk");
      }
      this.failure = messageOf(error);
      return false;
    }
  }

  /** Returns false when there is nothing to send; throws when it must be retried. */
  async #sendOne(): Promise<boolean> {
    const first = this.#queue.peek(REMOTE_LIMITS.request_bytes);
    if (!first) return false;
    const { entries, taken } = first;
    // Requests are lists of series, so the bytes of two, back to back, are one request.
    const body = compressSync(Buffer.concat(entries.map(({ bytes }) => bytes)));
    const answer = await fetch(`${this.#parts.address.write(entries[0]?.tenant ?? 0)}/api/v1/write`, {
      method: "POST",
      headers: {
        "content-type": "application/x-protobuf",
        "content-encoding": "snappy",
        "x-prometheus-remote-write-version": "0.1.0",
      },
      body: new Uint8Array(body),
      signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(REMOTE_LIMITS.write_ms)]),
    });
    const text = (await answer.text()).slice(0, 200);
    if (answer.status >= 500 || answer.status === 429) throw new Error(`it answered ${answer.status}: ${text}`);
    if (!answer.ok) {
      this.refused_bytes += entries.reduce((sum, { bytes }) => sum + bytes.length, 0);
      this.#parts.log.error({ status: answer.status, text }, "the metrics engine refused samples for good");
    }
    taken();
    return true;
  }
}
