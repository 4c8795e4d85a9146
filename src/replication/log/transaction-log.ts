/**
 * The transactions of one database, newest last, in segment files. A transaction is written at once, so that it
 * survives this process, and made durable together with those written meanwhile, so that it survives the machine.
 * A transaction is not published before it is durable.
 */
import { fdatasync, fdatasyncSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { syncDirectory } from "../durable.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeHeader, giveBackLtx, postChecksum } from "../ltx/codec.ts";
import type { LogRecord, RecordHeader } from "./record.ts";
import { Segment, segmentFirst, segmentName } from "./segment.ts";

export interface LogOptions {
  segment_bytes?: number;
  recent_bytes?: number;
}

export class TransactionLog {
  readonly dir: string;
  readonly #segment_bytes: number;
  readonly #recent_bytes: number;
  #segments: Segment[] = [];
  /** The txid before the first retained one. */
  #base: number;
  #durable: number;
  readonly #recent = new Map<number, Buffer>();
  #recent_size = 0;
  /** The last transaction at the previous check for new writes. */
  #seen_last = 0;
  #syncing: Promise<void> | undefined;
  /** Resolved after each step of a running sync. */
  #step = Promise.withResolvers<void>();
  #closed = false;
  /** Called whenever more is durable, during a running `sync`. */
  onDurable: () => void = () => undefined;
  /** Unreadable files that were moved aside. */
  readonly damaged: string[] = [];
  /** Last write before it was opened, by this machine's clock; 0: never. */
  readonly written_ms: number;

  constructor(dir: string, options: LogOptions = {}) {
    this.dir = dir;
    this.#segment_bytes = options.segment_bytes ?? REPLICATION_LIMITS.segment_bytes;
    this.#recent_bytes = options.recent_bytes ?? REPLICATION_LIMITS.recent_bytes;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    this.written_ms = this.#load();
    this.#base = (this.#segments[0]?.first ?? 1) - 1;
    this.#durable = this.last;
  }

  /** Transactions `base + 1` to `last` can be read. */
  get base(): number {
    return this.#base;
  }

  get last(): number {
    return this.#segments.at(-1)?.last ?? this.#base;
  }

  /** Whether no transaction is retained; then `base` is meaningless after a restart. */
  get empty(): boolean {
    return this.#segments.length === 0;
  }

  get durable(): number {
    return this.#durable;
  }

  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.size, 0);
  }

  /** `remember`: they will be read soon. Then the log owns their memory. */
  append(records: readonly LogRecord[], remember = true): void {
    const first = records[0];
    if (!first) return;
    if (first.txid !== this.last + 1) throw new Error(`transaction ${first.txid} cannot follow ${this.last}`);
    this.#writable(first.txid).append(records);
    if (remember) for (const { txid, ltx } of records) this.#remember(txid, ltx);
  }

  header(txid: number): RecordHeader | undefined {
    return this.#segmentOf(txid)?.header(txid);
  }

  /** Valid until the next append, which may reuse the memory. */
  read(txid: number): Buffer | undefined {
    return this.#recent.get(txid) ?? this.#segmentOf(txid)?.read(txid);
  }

  /** Like `read`, but from memory only; also after closing. */
  recent(txid: number): Buffer | undefined {
    return this.#recent.get(txid);
  }

  /** The checksum after `txid`, if the log still has it. */
  checksumAt(txid: number): bigint | undefined {
    const trailer = this.#recent.get(txid) ?? this.#segmentOf(txid)?.readTrailer(txid);
    if (trailer) return postChecksum(trailer);
    const next = txid === this.#base ? this.read(txid + 1) : undefined;
    return next && decodeHeader(next).pre_checksum;
  }

  /** Syncs everything written so far. */
  syncNow(): void {
    const segment = this.#segments.at(-1);
    if (segment && this.#durable < this.last) fdatasyncSync(segment.fd);
    this.#durable = this.last;
  }

  /**
   * The same in the background. Callers during a sync share the next one. Under continuous writes this does not
   * resolve; `onDurable` reports each step.
   */
  sync(): Promise<void> {
    if (this.#syncing) return this.#syncing;
    if (!this.#unfinished) return Promise.resolve();
    this.#syncing = this.#syncAll();
    return this.#syncing;
  }

  /** Resolves when a transaction is durable; someone must have called `sync`. Rejects when that fails. */
  async reached(txid: number): Promise<void> {
    while (this.#durable < txid && this.#syncing) await Promise.race([this.#syncing, this.#step.promise]);
    if (this.#durable < txid) throw new Error(`transaction ${txid} was not made durable`);
  }

  get #unfinished(): boolean {
    return this.#durable < this.last && !this.#closed;
  }

  async #syncAll(): Promise<void> {
    try {
      while (this.#unfinished) {
        const upto = this.last;
        const segment = this.#segments.at(-1);
        if (segment) await new Promise<void>((done, failed) => fdatasync(segment.fd, (e) => (e ? failed(e) : done())));
        this.#durable = Math.max(this.#durable, Math.min(upto, this.last));
        this.#step.resolve();
        this.#step = Promise.withResolvers();
        this.onDurable();
      }
    } finally {
      // In the same turn as the last check: a later writer must find no running sync.
      this.#syncing = undefined;
    }
  }

  /** Removes the transactions after `txid`, which are not in the database. */
  cutAfter(txid: number): void {
    while ((this.#segments.at(-1)?.first ?? 0) > txid) this.#drop(this.#segments.pop());
    this.#segments.at(-1)?.cutAfter(txid);
    for (const known of this.#recent.keys()) if (known > txid) this.#forget(known);
    if (this.#segments.length === 0) this.#base = Math.min(this.#base, txid);
    this.#durable = Math.min(this.#durable, txid);
  }

  /** Restarts the log: the database was replaced and is now at `txid`. */
  reset(txid: number): void {
    for (const segment of this.#segments.splice(0)) this.#drop(segment);
    for (const known of this.#recent.keys()) this.#forget(known);
    this.#base = txid;
    this.#durable = txid;
  }

  /** Deletes old segments. `keep_after`: transactions after this one are still needed. */
  retain(now_ms: number, keep_after: number, age_ms: number, bytes: number): void {
    while (this.#segments.length > 1) {
      const [oldest] = this.#segments;
      if (!oldest || oldest.last > keep_after) return;
      if (now_ms - oldest.modified_ms < age_ms && this.bytes < bytes) return;
      this.#drop(this.#segments.shift());
      this.#base = (this.#segments[0]?.first ?? this.#base + 1) - 1;
    }
  }

  /** Gives back the memory of recent transactions when none came since this was called last: all are on disk. */
  forgetIfIdle(): void {
    const idle = this.last === this.#seen_last && this.#durable === this.last;
    this.#seen_last = this.last;
    if (idle) for (const known of this.#recent.keys()) this.#forget(known);
  }

  close(): void {
    this.syncNow();
    this.#closed = true;
    this.#closeLater(this.#segments.splice(0));
  }

  #writable(txid: number): Segment {
    const current = this.#segments.at(-1);
    if (current && current.size < this.#segment_bytes) return current;
    if (current) fdatasyncSync(current.fd);
    const segment = new Segment(join(this.dir, segmentName(txid)), txid);
    this.#segments.push(segment);
    syncDirectory(this.dir);
    return segment;
  }

  #segmentOf(txid: number): Segment | undefined {
    return this.#segments.findLast((segment) => segment.first <= txid && txid <= segment.last);
  }

  #remember(txid: number, ltx: Buffer): void {
    this.#recent.set(txid, ltx);
    this.#recent_size += ltx.length;
    for (const oldest of this.#recent.keys()) {
      if (this.#recent_size <= this.#recent_bytes) break;
      this.#forget(oldest);
    }
  }

  #forget(txid: number): void {
    const ltx = this.#recent.get(txid);
    if (!ltx) return;
    this.#recent.delete(txid);
    this.#recent_size -= ltx.length;
    giveBackLtx(ltx);
  }

  #drop(segment: Segment | undefined): void {
    if (!segment) return;
    rmSync(segment.path, { force: true });
    this.#closeLater([segment]);
  }

  /** A descriptor must not be closed, and perhaps reused, during a sync. */
  #closeLater(segments: readonly Segment[]): void {
    const closeAll = (): void => {
      for (const segment of segments) segment.close();
    };
    if (this.#syncing) void this.#syncing.then(closeAll, closeAll);
    else closeAll();
  }

  /** Only an unbroken sequence up to the newest transaction is useful; what precedes a gap is moved aside. */
  #load(): number {
    let written_ms = 0;
    const firsts = readdirSync(this.dir)
      .map(segmentFirst)
      .filter((first) => first !== undefined)
      .sort((a, b) => a - b);
    for (const [i, first] of firsts.entries()) {
      const segment = new Segment(join(this.dir, segmentName(first)), first);
      const newest = i === firsts.length - 1;
      written_ms = segment.modified_ms;
      const intact = segment.load(newest);
      const follows = this.#segments.length === 0 || this.#segments.at(-1)?.last === first - 1;
      if (!follows) this.#setAside(this.#segments.splice(0));
      if (intact || newest) this.#segments.push(segment);
      else this.#setAside([...this.#segments.splice(0), segment]);
      // The newest file may end with a torn record, which was never announced.
      if (newest && !intact) segment.cutAfter(segment.last);
    }
    const empty = this.#segments.filter((segment) => segment.last < segment.first);
    for (const segment of empty) this.#drop(segment);
    this.#segments = this.#segments.filter((segment) => !empty.includes(segment));
    return written_ms;
  }

  #setAside(segments: Segment[]): void {
    for (const segment of segments) {
      segment.close();
      renameSync(segment.path, `${segment.path}.damaged`);
      this.damaged.push(segment.path);
    }
  }
}
