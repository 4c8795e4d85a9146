import type { MachineConfig } from "./config/config-schema.ts";
import type { Action, MachineState } from "./lifecycle/states.ts";

export type { MachineConfig } from "./config/config-schema.ts";

/** A machine as stored. Times are milliseconds since 1970. */
export interface Machine {
  id: string;
  org_id: string;
  app_id: string;
  app_name: string;
  name: string;
  region: string;
  host_id: string;
  private_ip: string;
  /** IPv4 address on its host while running; null when unknown or none. */
  private_ipv4: string | null;
  created_at: number;

  /** Incremented with every change, for optimistic locking. */
  revision: number;
  updated_at: number;
  state: MachineState;
  instance_id: string;
  image_ref: ImageRef;
  cordoned: boolean;
  secrets_version: number;
  /** Number of unfinished operations. */
  pending: number;
  /** Timeout of the transitional state; null in a persistent one. */
  deadline_at: number | null;
  /** Next start of a scheduled machine. */
  next_run_at: number | null;
  /** The running or frozen boot; exit notices of other boots are ignored. */
  boot: string | null;
  /** What the driver needs to find the boot again. */
  handle: Handle | null;
  /** `stop_config` of the version that booted, which later updates do not change; null when nothing runs. */
  boot_stop_config: StopConfig | null;
  /** Whether its memory is on disk. A suspended machine without it is frozen in its host's memory, or lost it. */
  snapshot: boolean;
  started_at: number | null;
  /** Consecutive restarts by the restart policy. */
  restarts: number;
  cpus: number;
  memory_mb: number;
  /** Whether its size is reserved on its host: while it runs, is about to, or is frozen in memory. */
  reserved: boolean;
  lease: Lease | null;
  checks: Record<string, CheckStatus>;
  /** The newest events, newest first. The store has the whole log. */
  events: MachineEvent[];

  config: MachineConfig;
}

/** The fields of a machine in a list, which are cheaper to read. */
export type ShownMachine = Pick<
  Machine,
  | "id"
  | "name"
  | "state"
  | "region"
  | "host_id"
  | "instance_id"
  | "private_ip"
  | "private_ipv4"
  | "created_at"
  | "updated_at"
  | "image_ref"
  | "cordoned"
  | "lease"
  | "checks"
  | "events"
  | "config"
>;

/** Host, region and private address of a machine. */
export type Place = Pick<Machine, "host_id" | "region" | "private_ip">;

export type StopConfig = NonNullable<MachineConfig["stop_config"]>;

/** JSON that only the driver reads. */
export type Handle = Record<string, unknown>;

export interface ImageRef {
  registry: string;
  repository: string;
  tag?: string;
  digest: string;
  labels?: Record<string, string>;
}

export interface Lease {
  nonce: string;
  owner: string;
  description: string;
  /** Wall-clock time when it was granted; expiry is measured on the monotonic clock. */
  expires_at: number;
  ttl_ms: number;
}

export interface CheckStatus {
  status: "passing" | "warning" | "critical";
  output: string;
  /** Time of the last change of status. */
  updated_at: number;
}

export type Source = "user" | "proxy" | "host" | "policy" | "schedule" | "standby";

export interface MachineEvent {
  id: string;
  type: string;
  status: string;
  source: Source;
  timestamp: number;
  request?: EventRequest;
}

export interface EventRequest {
  exit_event?: ExitEvent;
  restart_count?: number;
  error?: string;
  reason?: string;
  [more: string]: unknown;
}

export interface ExitEvent {
  exit_code: number;
  guest_exit_code: number;
  signal: number;
  guest_signal: number;
  oom_killed: boolean;
  /** The process killed by the OOM killer, and whose memory was full. */
  oom?: { process: string; memory: "machine" | "host" };
  requested_stop: boolean;
  restarting: boolean;
  exited_at: string;
}

/** An event with its position in its organization's log. */
export interface LoggedEvent extends MachineEvent {
  seq: number;
  machine_id: string;
  machine_name: string;
  app_name: string;
  instance_id: string;
}

/** A queued action on a machine: written with the state it leads to, carried out afterwards. */
export interface Operation {
  id: string;
  machine_id: string;
  host_id: string;
  /** Execution order among the machine's operations. */
  position: number;
  kind: Action;
  payload: OperationPayload;
  /** Earliest time; null means at once. */
  not_before: number | null;
  /** Whether the machine's state already shows it. */
  begun: boolean;
}

export interface OperationPayload {
  source: Source;
  /** Who requested it. */
  by?: string;
  signal?: string;
  timeout_ms?: number;
  /** Of an update: whether the machine starts afterwards, and whether it had never run. */
  launch?: boolean;
  was_created?: boolean;
  /** Of a restart: the new host. */
  move_to?: Place;
  reason?: string;
}
