import type { Clock } from "#core/clock.ts";
import type { HostService } from "#hosts/service.ts";
import type { VolumeDisk } from "./disk.ts";
import type { VolumeExecutor } from "./executor.ts";
import type { VolumeKeys } from "./keys.ts";
import type { VolumeStore } from "./store.ts";
import type { VolumeWriter } from "./writer.ts";

export interface VolumeParts {
  store: VolumeStore;
  writer: VolumeWriter;
  executor: VolumeExecutor;
  hosts: HostService;
  disk: VolumeDisk;
  keys: VolumeKeys;
  clock: Clock;
  /** Time for which a deleted volume can be restored. */
  undelete_ms: number;
}

/** The owner of a new volume. */
export interface Owner {
  org_id: string;
  app_id: string;
  app_name: string;
}

export interface CreateVolumeInput {
  name: string;
  region?: string | undefined;
  size_gb?: number | undefined;
  fstype?: string | undefined;
  encrypted?: boolean | undefined;
  auto_backup_enabled?: boolean | undefined;
  snapshot_retention?: number | undefined;
  require_unique_zone?: boolean | undefined;
  unique_zone_app_wide?: boolean | undefined;
  snapshot_id?: string | undefined;
  source_volume_id?: string | undefined;
  compute?: { cpus?: number | undefined; memory_mb?: number | undefined } | undefined;
}
