import { isoTime } from "#core/clock.ts";
import type { HostService } from "#hosts/service.ts";
import { GIB, type VolumeDisk } from "./disk.ts";
import type { VolumeExecutor } from "./executor.ts";
import type { VolumeKeys } from "./keys.ts";
import { usedPercent } from "./scheduler.ts";
import type { Snapshot, Usage, Volume } from "./types.ts";

interface VolumeResponsesParts {
  disk: VolumeDisk;
  keys: VolumeKeys;
  hosts: HostService;
  executor: VolumeExecutor;
}

const NOTHING: Usage = { blocks: 0, block_size: 0, blocks_free: 0, blocks_avail: 0 };

/** Builds the JSON of volumes and snapshots for responses. */
export class VolumeResponses {
  readonly #parts: VolumeResponsesParts;

  constructor(parts: VolumeResponsesParts) {
    this.#parts = parts;
  }

  /** Response of create, update and delete, without file system usage. */
  changed(volume: Volume) {
    return this.#answer(volume, NOTHING, "");
  }

  async read(volume: Volume) {
    const usage = await this.usage(volume);
    return this.#answer(volume, usage ?? NOTHING, usage ? volume.fstype : "");
  }

  /** Current usage, else the last known. */
  async usage(volume: Volume): Promise<Usage | undefined> {
    if (!["created", "extending"].includes(volume.state)) return undefined;
    const { disk, keys } = this.#parts;
    const now = await disk.usage(keys.open(volume)).catch(() => undefined);
    return now ?? volume.usage ?? undefined;
  }

  /** The requested size; file system usage is in the machine's own series. */
  async measure(volume: Volume) {
    const { id, app_name, region, host_id, org_id, size_gb } = volume;
    const usage = await this.usage(volume);
    const size_bytes = size_gb * GIB;
    return { id, app_name, region, host_id, org_id, size_bytes, used_pct: usage ? usedPercent(usage) : 0 };
  }

  #answer(volume: Volume, usage: Usage, fstype: string) {
    const { hosts, executor } = this.#parts;
    const { id, name, state, size_gb, region, zone, encryption, attached_machine_id, created_at } = volume;
    const { snapshot_retention, auto_backup_enabled, deleted_at, purge_at, error, needs_restart } = volume;
    const progress = executor.progress(id);
    return {
      id,
      name,
      state,
      size_gb,
      region,
      zone,
      encrypted: encryption !== null,
      ...(encryption === null ? {} : { encryption }),
      attached_machine_id,
      attached_alloc_id: null,
      created_at: isoTime(created_at),
      ...usage,
      bytes_total: usage.blocks * usage.block_size,
      bytes_used: (usage.blocks - usage.blocks_free) * usage.block_size,
      fstype,
      snapshot_retention,
      auto_backup_enabled,
      needs_restart,
      host_dedication_key: "",
      host_status: hosts.status(volume.host_id),
      ...(error === null ? {} : { error }),
      ...(progress ? { progress } : {}),
      ...(deleted_at === null
        ? {}
        : { deleted_at: isoTime(deleted_at), recoverable_until: isoTime(purge_at ?? deleted_at) }),
    };
  }

  snapshot(snapshot: Snapshot) {
    const { id, size, digest, created_at, retention_days, status, volume_gb, stored, kind, message } = snapshot;
    const progress = this.#parts.executor.progress(id);
    return {
      id,
      size,
      digest,
      created_at: isoTime(created_at),
      retention_days,
      status,
      volume_id: snapshot.volume_id,
      volume_size: volume_gb * GIB,
      stored_bytes: stored,
      expires_at: isoTime(snapshot.expires_at),
      kind,
      ...(message === "" ? {} : { message }),
      ...(progress ? { progress } : {}),
    };
  }

  /** Response of an on-demand snapshot. */
  record({ id, app_id, volume_id, created_at, updated_at }: Snapshot) {
    return {
      id: `bk_${id.slice("vs_".length)}`,
      app_id,
      volume_id,
      state: "prepare",
      type: "BACKUP_TYPE_ON_DEMAND",
      message: "",
      created_at: isoTime(created_at),
      updated_at: isoTime(updated_at),
      finished_at: null,
      graph_id: id,
    };
  }
}
