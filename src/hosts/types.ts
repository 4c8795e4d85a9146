/** A place that runs machines: a box of its own, or one of several declared on one box so that placement can be tried. */
export interface Host {
  /** Four hex digits. */
  id: string;
  region: string;
  zone: string;
  /** Total capacity for machines; 0 means unlimited. */
  cpus: number;
  memory_mb: number;
  /** `failed`: no operations there; its machines are marked unreachable. */
  state: "ok" | "failed";
  used_cpus: number;
  used_memory_mb: number;
  /** No new machines are placed there. */
  cordoned: boolean;
  /** Its machines move elsewhere as capacity permits; ends when it is uncordoned. */
  draining: boolean;
  /** The data dir whose process is the host; empty if there never was one. */
  node_id: string;
  /** Incremented with each tenure, as a fencing token. */
  epoch: number;
  /** Incremented with each renewal. */
  beat: number;
  /** Duration of a renewal; 0 for a host without a lease, which cannot be lost. */
  lease_ms: number;
  /** The epoch up to which losses were handled. */
  handled: number;
  /** An operator marked it as failed or held it back; only an operator reverts that. */
  held: boolean;
  /** `host:port` of its channel; empty when it has none. */
  address: string;
  facts: HostFacts;
  /** When it joined and was last seen, by the host's wall clock; for display only. */
  joined_at: number;
  seen_at: number;
}

/** Status of a machine's host. */
export type HostStatus = "ok" | "unknown" | "unreachable";

/** What the host watch of this process knows of a host. */
export interface WatchedHost {
  /** Without a recent heartbeat. */
  silent: boolean;
  /** When it counts as lost unless it renews its lease, by this process's wall clock; undefined after that. */
  lease_ends_at: number | undefined;
}

/** Facts that a host reports. */
export interface HostFacts {
  driver?: string;
  /** `yes` when machines are suspended by snapshot; otherwise the kind, or `no`, and why. */
  suspend?: string;
  /** `yes` when it can build images, or why not. */
  builds?: string;
  /** Whether machines can have swap, or why not. */
  swap?: string;
  /** `yes` when machines can have a SQLite node, or why not. Hosts of older versions do not say it. */
  sqlite?: string;
  disk_gb?: number;
  version?: string;
  arch?: string;
}

export type Placing = Pick<Host, "id" | "region" | "zone" | "cpus" | "memory_mb">;

/** The lease as its holder knows it. */
export interface Tenure {
  id: string;
  node_id: string;
  epoch: number;
}
