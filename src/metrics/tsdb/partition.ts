import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { Labels } from "../source.ts";
import { BlockStore } from "./block/store.ts";
import { makeDir, Quarantine, StorageError, syncDir } from "./files.ts";
import { type Batch, Head } from "./head.ts";
import { SeriesTable } from "./index/series-table.ts";
import { Admission, type DropReason } from "./ingest/admission.ts";
import type { Intake } from "./ingest/importer.ts";
import type { TsdbLimits } from "./limits.ts";
import { Maintenance } from "./maintenance.ts";
import { PartitionSource } from "./select.ts";
import { replay } from "./wal/replay.ts";
import { Wal } from "./wal/wal.ts";

/**
 * The metrics of one org, in a folder of its own:
 *
 *     wal/00000001.wal …           samples that are in no block yet
 *     blocks/<start>-<end>-<n>.block
 *     quarantine/                  whatever could not be read, whole
 *
 * A sample that was appended is readable at once, is on the disk within `wal_sync_ms` or when `flush`
 * resolves, and is in exactly one of log and blocks.
 */
export class Partition implements Intake {
  readonly dir: string;
  readonly takes_histograms = true;
  readonly limits: TsdbLimits;
  readonly clock: Clock;
  readonly table: SeriesTable;
  readonly head = new Head();
  readonly quarantine: Quarantine;
  readonly admission: Admission;
  readonly source: PartitionSource;
  readonly #blocks: BlockStore;
  readonly #wal: Wal;
  readonly #maintenance: Maintenance;
  #syncTimer: NodeJS.Timeout | undefined;
  /** Samples stored since opening. */
  appended = 0;
  #oldest = Number.POSITIVE_INFINITY;

  constructor(dir: string, clock: Clock, limits: TsdbLimits) {
    this.dir = dir;
    this.clock = clock;
    this.limits = limits;
    makeDir(dir);
    this.quarantine = new Quarantine(join(dir, "quarantine"));
    this.table = new SeriesTable(limits.label_cache_series);
    this.#blocks = new BlockStore(
      join(dir, "blocks"),
      limits.frame_cache_bytes,
      this.quarantine,
      (labels) => this.table.add(labels),
      () => clock.monotonic(),
    );
    this.#wal = new Wal(join(dir, "wal"), limits.wal_segment_bytes);
    this.admission = new Admission(this.table, this.head, limits, clock);
    const parts = {
      head: this.head,
      wal: this.#wal,
      table: this.table,
      admission: this.admission,
      quarantine: this.quarantine,
    };
    replay({ ...parts, blocks: this.#blocks.list });
    for (const window of this.head.windows) window.written_at = clock.monotonic();
    this.#maintenance = new Maintenance({ ...parts, blocks: this.#blocks, limits, clock });
    this.source = new PartitionSource(this);
  }

  get blocks(): BlockStore["list"] {
    return this.#blocks.list;
  }

  get generation(): number {
    return this.table.generation;
  }

  series(labels: Labels, own = false): number | undefined {
    return this.admission.series(labels, own);
  }

  dropped(reason: DropReason): void {
    this.admission.drops.add(reason);
  }

  /** Bytes on disk, without quarantine. */
  get bytes(): { wal: number; blocks: number } {
    return { wal: this.#wal.bytes, blocks: this.#blocks.bytes };
  }

  /** A WAL sync failed: reads continue, writes only after reopening. */
  get broken(): boolean {
    return this.#wal.broken;
  }

  get failure(): Error | undefined {
    return this.#maintenance.failure;
  }

  /**
   * Stores the admitted samples of the batch, which is modified. Throws StorageError when the disk refuses: then
   * nothing was stored.
   */
  append(batch: Batch): number {
    if (this.head.bytes > this.limits.head_bytes_most) {
      throw new StorageError("blocks cannot be written and memory for samples is full (head_bytes_most)", this.failure);
    }
    this.admission.admit(batch);
    if (batch.length === 0) return 0;
    this.#wal.append(batch, (ref) => this.table.spell(ref));
    const monotonic = this.clock.monotonic();
    this.head.append(batch, monotonic);
    for (const window of this.head.windows) if (window.written_at === monotonic) this.#wal.holds(window.id);
    this.appended += batch.length;
    for (let i = 0; i < batch.length; i++) this.#oldest = Math.min(this.#oldest, batch.timestamps[i] as number);
    this.#syncSoon();
    if (this.#maintenance.due) void this.#maintenance.run();
    return batch.length;
  }

  /** The oldest time written since the last call, to invalidate caches. */
  takeOldest(): number {
    const oldest = this.#oldest;
    this.#oldest = Number.POSITIVE_INFINITY;
    return oldest;
  }

  /** Resolves when everything appended before is durable. */
  async flush(): Promise<void> {
    await this.#wal.flush();
  }

  /** Periodic maintenance: idle windows, merges, retention. */
  async maintain(): Promise<void> {
    await this.#maintenance.run();
    // A running maintenance may not include what is due now.
    if (this.#maintenance.due) await this.#maintenance.run();
  }

  async compact(): Promise<void> {
    await this.#maintenance.compact();
  }

  async close(): Promise<void> {
    clearTimeout(this.#syncTimer);
    await this.#maintenance.stop();
    try {
      await this.#wal.close();
    } finally {
      this.#blocks.close();
    }
  }

  /** Closes it and deletes everything, including quarantine. */
  async destroy(): Promise<void> {
    await this.close().catch(() => undefined);
    rmSync(this.dir, { recursive: true, force: true });
    syncDir(join(this.dir, ".."));
  }

  #syncSoon(): void {
    if (this.#syncTimer) return;
    this.#syncTimer = setTimeout(() => {
      this.#syncTimer = undefined;
      // The WAL keeps the failure; the next append and flush report it.
      this.#wal.flush().catch(() => undefined);
    }, this.limits.wal_sync_ms);
    this.#syncTimer.unref();
  }
}
