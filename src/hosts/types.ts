/** A place that runs machines: a box of its own, or one of several declared on one box so that placement can be tried. */
export interface Host {
  /** Four hex digits. */
  id: string;
  region: string;
  zone: string;
  /** What machines may take altogether; 0 is no bound. */
  cpus: number;
  memory_mb: number;
  /** `failed`: nothing can be done there; its machines are marked unreachable. */
  state: "ok" | "failed";
  used_cpus: number;
  used_memory_mb: number;
  /** Nothing new is placed there. */
  cordoned: boolean;
  /** What is there goes elsewhere as soon as there is room; ends when machines may be placed there again. */
  draining: boolean;
  /** The data dir whose process is the host; empty while none ever was. */
  node_id: string;
  /** Goes up whenever the host is taken or taken away: who holds another number holds nothing. */
  epoch: number;
  /** Goes up with every renewal of the lease. */
  beat: number;
  /** How long a beat lasts; 0 for a host without a lease, which cannot be lost. */
  lease_ms: number;
  /** The epoch up to which everything was done that follows from losing it. */
  handled: number;
  /** An operator said it has failed, or must not come back yet; only an operator takes that back. */
  held: boolean;
  /** Where other processes reach it, `host:port`; empty when it has no door. */
  address: string;
  facts: HostFacts;
  /** When it joined and when it was last heard of, by the host's wall clock; for people, nothing is decided by it. */
  joined_at: number;
  seen_at: number;
}

/** What is known about the host of a machine. */
export type HostStatus = "ok" | "unknown" | "unreachable";

/** What a host says about itself. */
export interface HostFacts {
  driver?: string;
  /** `yes` when machines are suspended by snapshot there; otherwise which kind there is, or `no`, and why. */
  suspend?: string;
  /** Whether machines can have swap there, or why not. */
  swap?: string;
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
