import type { MachineConfig } from "./config/config-schema.ts";
import type { Action, MachineState } from "./lifecycle/states.ts";

export type { MachineConfig } from "./config/config-schema.ts";

/** A machine as it is kept. Times are milliseconds since 1970. */
export interface Machine {
  id: string;
  org_id: string;
  app_id: string;
  app_name: string;
  name: string;
  region: string;
  host_id: string;
  private_ip: string;
  /** Its IPv4 address on its host while it runs; null when it has none that is known. */
  private_ipv4: string | null;
  created_at: number;

  /** Goes up by one with every change: who read 7 may write only while it is 7. */
  revision: number;
  updated_at: number;
  state: MachineState;
  instance_id: string;
  image_ref: ImageRef;
  cordoned: boolean;
  secrets_version: number;
  /** Operations that are not finished. */
  pending: number;
  /** When the state must have passed; null in a state that lasts. */
  deadline_at: number | null;
  /** When a scheduled machine starts next. */
  next_run_at: number | null;
  /** Names the boot that runs or is frozen; word of another boot's exit is old news. */
  boot: string | null;
  /** What the driver needs to find it again. */
  handle: Handle | null;
  /** The `stop_config` of the version that booted, which a later update does not change; null when nothing runs. */
  boot_stop_config: StopConfig | null;
  /** Whether its memory is on the disk. A suspended machine without is frozen in its host's memory, or lost it. */
  snapshot: boolean;
  started_at: number | null;
  /** Restarts in a row by the restart policy. */
  restarts: number;
  cpus: number;
  memory_mb: number;
  /** Whether its size is taken from its host: while it runs, is about to, or is frozen in its memory. */
  reserved: boolean;
  lease: Lease | null;
  checks: Record<string, CheckStatus>;
  /** The newest events, newest first. The whole log is in the store. */
  events: MachineEvent[];

  config: MachineConfig;
}

/** What a list shows of a machine: half of it, and half the work to read. */
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

/** Where a machine is. */
export type Place = Pick<Machine, "host_id" | "region" | "private_ip">;

export type StopConfig = NonNullable<MachineConfig["stop_config"]>;

/** Plain JSON that only the driver reads. */
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
  /** By the wall clock when it was given; the clock that counts is the one that does not jump. */
  expires_at: number;
  ttl_ms: number;
}

export interface CheckStatus {
  status: "passing" | "warning" | "critical";
  output: string;
  /** When the status changed last. */
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
  /** What the kernel killed, and whose memory was full. */
  oom?: { process: string; memory: "machine" | "host" };
  requested_stop: boolean;
  restarting: boolean;
  exited_at: string;
}

/** An event with its place in the log of its organization. */
export interface LoggedEvent extends MachineEvent {
  seq: number;
  machine_id: string;
  machine_name: string;
  app_name: string;
  instance_id: string;
}

/** Something to be done to a machine: written with the state it leads to, carried out afterwards. */
export interface Operation {
  id: string;
  machine_id: string;
  host_id: string;
  /** Operations of one machine are carried out in this order. */
  position: number;
  kind: Action;
  payload: OperationPayload;
  /** Not before this time; null is at once. */
  not_before: number | null;
  /** Whether the machine's state already shows it. */
  begun: boolean;
}

export interface OperationPayload {
  source: Source;
  signal?: string;
  timeout_ms?: number;
  /** Of an update: whether the machine runs afterwards, and whether it never ran before. */
  launch?: boolean;
  was_created?: boolean;
  /** Of a restart: it comes up there and not where it was. */
  move_to?: Place;
  reason?: string;
}
