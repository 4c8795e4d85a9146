import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import { SteadyClock } from "#core/steady-clock.ts";
import type { VolumeDisk } from "./disk.ts";
import type { Garbage } from "./garbage.ts";
import type { VolumeKeys } from "./keys.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import type { VolumeService } from "./service.ts";
import type { SnapshotService } from "./snapshots.ts";
import type { Growing, VolumeStore } from "./store.ts";
import type { Usage, Volume } from "./types.ts";

interface SchedulerParts {
  host_ids: readonly string[];
  store: VolumeStore;
  disk: VolumeDisk;
  keys: VolumeKeys;
  volumes: VolumeService;
  snapshots: SnapshotService;
  garbage: Garbage;
  clock: Clock;
  log: Log;
  /** Called after automatic growth. */
  grown?: ((grown: Grown) => Promise<void>) | undefined;
}

/** A volume before its growth, and the new size. */
export interface Grown {
  volume: Volume;
  size_gb: number;
  /** Whether its machine must restart to see the new size. */
  needs_restart: boolean;
}

/** Checks regularly what is due: growth, daily snapshots, expiry, unused data. */
export class VolumeScheduler {
  readonly #parts: SchedulerParts;
  readonly #ids: Ids;
  readonly #closing = new AbortController();
  /** Expired data is deleted only by a trusted clock. */
  readonly #steady: SteadyClock;
  #swept_at = Number.NEGATIVE_INFINITY;
  #done: Promise<void> = Promise.resolve();

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    this.#ids = randomIds(parts.clock);
    this.#steady = new SteadyClock(parts.clock, VOLUME_LIMITS.steady_clock_ms);
  }

  start(): void {
    this.#done = this.#loop();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#done;
  }

  async #loop(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await this.round();
      } catch (error) {
        if (!signal.aborted) this.#parts.log.warn({ error }, "the upkeep of volumes failed; it is tried again");
      }
      await this.#parts.clock.sleep(VOLUME_LIMITS.upkeep_ms, signal).catch(() => {});
    }
  }

  /** One look at everything. */
  async round(): Promise<void> {
    const { store, host_ids, clock, volumes, snapshots, garbage } = this.#parts;
    const now = clock.now();
    const steady = this.#steady.isSteady();
    for (const growing of await store.growing(host_ids)) await this.#alone(() => this.#grow(growing));
    const { backup, purge, orphans } = await store.due(host_ids, now);
    for (const volume of backup) await this.#alone(() => snapshots.daily(volume, this.#ids));
    for (const volume of purge.filter((one) => steady || !couldBeTakenBack(one)))
      await this.#alone(() => garbage.purge(volume));
    // Volumes of deleted apps, which cannot be restored.
    for (const { id } of orphans) await this.#alone(() => volumes.delete(id));
    for (const snapshot of steady ? await store.expired(now) : []) await this.#alone(() => snapshots.forget(snapshot));
    if (clock.monotonic() - this.#swept_at < VOLUME_LIMITS.sweep_ms) return;
    this.#swept_at = clock.monotonic();
    await garbage.collect({ expired: steady, deleted: false, unknown: false });
  }

  /** A failure of one volume does not affect the others. */
  async #alone(work: () => Promise<unknown>): Promise<void> {
    if (this.#closing.signal.aborted) return;
    try {
      await work();
    } catch (error) {
      // Refused because it is busy: retried in the next round.
      if (!(error instanceof ApiError)) this.#parts.log.warn({ error }, "the scheduled work of a volume failed");
    }
  }

  async #grow({ volume, extend_threshold_percent, add_size_gb, size_gb_limit }: Growing): Promise<void> {
    const { disk, keys, volumes, log, grown } = this.#parts;
    // Growth that its machine does not see yet does not free space, so it does not grow again.
    if (volume.needs_restart) return;
    const usage = await disk.usage(keys.open(volume));
    if (!usage || usedPercent(usage) < extend_threshold_percent) return;
    const limit = Math.min(size_gb_limit ?? VOLUME_LIMITS.size_gb_max, VOLUME_LIMITS.size_gb_max);
    const size_gb = Math.min(volume.size_gb + add_size_gb, limit);
    if (size_gb <= volume.size_gb) return;
    log.info({ volume: volume.id, from: volume.size_gb, to: size_gb }, "a volume grows by its machine's config");
    const { needs_restart } = await volumes.extend(volume.id, size_gb, this.#ids);
    await grown?.({ volume, size_gb, needs_restart });
  }
}

/** Without an undelete period no clock is needed. */
const couldBeTakenBack = ({ deleted_at, purge_at }: Volume): boolean => (purge_at ?? 0) > (deleted_at ?? 0);

export const usedPercent = ({ blocks, blocks_avail }: Usage): number =>
  blocks === 0 ? 0 : 100 * (1 - blocks_avail / blocks);
