import type { Ids } from "#core/ids.ts";
import type { MachineConfig, Source } from "./types.ts";

/** Finds volumes for machines; implemented by the volumes module. */
export interface VolumeFinder {
  locate(volume_id: string): Promise<VolumePlace | undefined>;
  /** The volumes of an app that have this name. */
  named(app_id: string, name: string): Promise<VolumePlace[]>;
  /** Whether volumes can go from one host to another; absent is no. */
  readonly movable?: boolean;
  /** A volume goes where its machine has gone; what cannot be begun now is begun when the machine starts there. */
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
  /** Why it cannot be mounted yet, or any more. */
  unready?: string;
}

/** The app that the machine belongs to. */
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
  /** The reason for the event, when the platform itself makes the change. */
  reason?: string;
  ids: Ids;
  /** Aborted when the client has gone: then a registry need not answer any more. */
  signal?: AbortSignal;
}
