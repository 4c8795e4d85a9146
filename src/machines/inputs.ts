import type { Ids } from "#core/ids.ts";
import type { MachineConfig, Source } from "./types.ts";

/** Finds volumes for machines. Implemented by the volumes module. */
export interface VolumeFinder {
  locate(volume_id: string): Promise<VolumePlace | undefined>;
  /** Volumes of an app with this name. */
  named(app_id: string, name: string): Promise<VolumePlace[]>;
  /** Whether volumes can move between hosts; absent means no. */
  readonly movable?: boolean;
  /**
   * Starts moving a volume to its machine's host; if that is not possible now, it happens when the machine starts
   * there.
   */
  follow?(volume_id: string, host_id: string): Promise<void>;
}

export interface VolumePlace {
  id: string;
  app_id: string;
  name: string;
  size_gb: number;
  encrypted: boolean;
  region: string;
  host_id: string;
  attached_machine_id: string | null;
  /** Why it cannot be mounted now. */
  unready?: string;
}

/** The app that owns the machine. */
export interface Owner {
  org_id: string;
  app_id: string;
  app_name: string;
  network: string;
}

export interface CreateMachineInput {
  name?: string | undefined;
  region?: string | undefined;
  config: MachineConfig;
  skip_launch?: boolean | undefined;
  skip_service_registration?: boolean | undefined;
  lease_ttl?: number | undefined;
  min_secrets_version?: number | undefined;
}

export interface UpdateMachineInput extends CreateMachineInput {
  current_version?: string | undefined;
}

/** Who makes a change: recorded in events and leases; `nonce` proves a lease. */
export interface Actor {
  name: string;
  nonce?: string | undefined;
  source?: Source;
  /** Event reason of a change that the platform makes itself. */
  reason?: string;
  ids: Ids;
  /** Aborted when the client disconnects, which also cancels registry requests. */
  signal?: AbortSignal;
}
