/**
 * Batches of transactions after a position of a log, ready to be sent. Most replicas are at the same position, so a
 * batch is built once for all of them, and sent in one write, which costs less than one for each transaction.
 *
 * Batched here, and not by corking the response: a corked, chunked response never refuses a write, so it never emits
 * "drain", and the wait for a slow replica would never end.
 */
import type { ServerResponse } from "node:http";
import type { TransactionLog } from "../log/transaction-log.ts";
import { transactionHead } from "./wire.ts";

const GATHERED_BYTES = 256 * 1024;
/** Cached batches for the other replicas. Only a lagging one needs older ones. */
const CACHED_BATCHES = 16;
/** Buffers that can be reused. */
const SPARE = 4;

/** Whose transactions they are. */
export interface Source {
  readonly name: string;
  readonly log: Pick<TransactionLog, "durable" | "read">;
}

export interface Batch {
  readonly source: Source;
  readonly first: number;
  /** The transaction after the last one of these. */
  readonly next: number;
  readonly parts: readonly Buffer[];
  /** Number of users of the memory. */
  users: number;
}

export class Batches {
  readonly #cached: Batch[] = [];
  readonly #spare: Buffer[] = [];

  /** Durable transactions from `first` on, as many as fit. Undefined: the log no longer has it. */
  from(source: Source, first: number): Batch | undefined {
    const kept = this.#cached.find((batch) => batch.source === source && batch.first === first);
    if (kept) return kept;
    const { parts, bytes } = this.#read(source, first);
    if (bytes === 0) return undefined;
    // What is too large to copy has its own, immutable memory.
    const sent = bytes > GATHERED_BYTES ? parts : [this.#copied(parts)];
    const batch = { source, first, next: first + parts.length / 2, parts: sent, users: 1 };
    if (this.#cached.push(batch) > CACHED_BATCHES) this.#release(this.#cached.shift());
    return batch;
  }

  send(batch: Batch, response: ServerResponse): void {
    for (const part of batch.parts) {
      batch.users++;
      response.write(part, () => this.#release(batch));
    }
  }

  /** Drops all batches. After this turn the log may differ. */
  forget(): void {
    for (const batch of this.#cached.splice(0)) this.#release(batch);
  }

  /** Headers and transactions: as many as fit, or one that does not. */
  #read({ name, log }: Source, first: number): { parts: Buffer[]; bytes: number } {
    const parts: Buffer[] = [];
    let bytes = 0;
    for (let txid = first; txid <= log.durable; txid++) {
      const ltx = log.read(txid);
      const head = ltx && transactionHead(name, ltx.length);
      if (!head || (bytes > 0 && bytes + head.length + ltx.length > GATHERED_BYTES)) break;
      parts.push(head, ltx);
      bytes += head.length + ltx.length;
    }
    return { parts, bytes };
  }

  /** Copied, so that the log can reuse its memory at once. */
  #copied(parts: readonly Buffer[]): Buffer {
    const memory = this.#spare.pop() ?? Buffer.allocUnsafeSlow(GATHERED_BYTES);
    let filled = 0;
    for (const part of parts) filled += part.copy(memory, filled);
    return memory.subarray(0, filled);
  }

  #release(batch: Batch | undefined): void {
    if (!batch || --batch.users > 0) return;
    const [memory, large] = batch.parts;
    if (memory && !large && this.#spare.length < SPARE) this.#spare.push(Buffer.from(memory.buffer));
  }
}
