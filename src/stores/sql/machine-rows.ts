import type {
  EventRequest,
  Lease,
  LoggedEvent,
  Machine,
  MachineEvent,
  Operation,
  ShownMachine,
} from "#machines/types.ts";
import type { Value } from "../database.ts";
import { toValue } from "./arguments.ts";

/** Columns set at creation, and columns that every change writes. Objects are JSON. */
const FIXED = ["id", "org_id", "app_id", "app_name", "name", "region", "host_id", "private_ip", "created_at"] as const;
const CHANGING = [
  "revision",
  "updated_at",
  "state",
  "instance_id",
  "image_ref",
  "cordoned",
  "secrets_version",
  "pending",
  "deadline_at",
  "next_run_at",
  "boot",
  "private_ipv4",
  "handle",
  "boot_stop_config",
  "snapshot",
  "started_at",
  "restarts",
  "cpus",
  "memory_mb",
  "reserved",
  "lease",
  "checks",
  "events",
] as const;

const COLUMNS = [...FIXED, ...CHANGING];
export const MACHINE = COLUMNS.map((column) => `m.${column}`).join(", ");
export const INSERT_MACHINE = `INSERT INTO machines (${COLUMNS.join(", ")})
  SELECT ${COLUMNS.map(() => "?").join(", ")} WHERE EXISTS (SELECT 1 FROM apps WHERE id = ?) ON CONFLICT DO NOTHING`;
export const UPDATE_MACHINE = `UPDATE machines SET ${CHANGING.map((column) => `${column} = ?`).join(", ")}
  WHERE id = ? AND revision = ?`;

export const insertArgs = (machine: Machine): Value[] => [
  ...COLUMNS.map((column) => toValue(machine[column])),
  machine.app_id,
];
export const updateArgs = (machine: Machine): Value[] => [
  ...CHANGING.map((column) => toValue(machine[column])),
  machine.id,
  machine.revision - 1,
];

export type MachineRow = Omit<
  Machine,
  | "image_ref"
  | "handle"
  | "boot_stop_config"
  | "cordoned"
  | "snapshot"
  | "reserved"
  | "lease"
  | "checks"
  | "events"
  | "config"
> & {
  image_ref: string;
  handle: string | null;
  boot_stop_config: string | null;
  cordoned: number;
  snapshot: number;
  reserved: number;
  lease: string | null;
  checks: string;
  events: string;
  config: string;
};

/** Field by field: lists build thousands of these, and a spread of thirty fields costs more than the query. */
export function toMachine(row: MachineRow): Machine {
  return {
    id: row.id,
    org_id: row.org_id,
    app_id: row.app_id,
    app_name: row.app_name,
    name: row.name,
    region: row.region,
    host_id: row.host_id,
    private_ip: row.private_ip,
    created_at: row.created_at,
    revision: row.revision,
    updated_at: row.updated_at,
    state: row.state,
    instance_id: row.instance_id,
    image_ref: JSON.parse(row.image_ref) as Machine["image_ref"],
    cordoned: row.cordoned === 1,
    secrets_version: row.secrets_version,
    pending: row.pending,
    deadline_at: row.deadline_at,
    next_run_at: row.next_run_at,
    boot: row.boot,
    private_ipv4: row.private_ipv4,
    handle: row.handle === null ? null : (JSON.parse(row.handle) as Machine["handle"]),
    boot_stop_config:
      row.boot_stop_config === null ? null : (JSON.parse(row.boot_stop_config) as Machine["boot_stop_config"]),
    snapshot: row.snapshot === 1,
    started_at: row.started_at,
    restarts: row.restarts,
    cpus: row.cpus,
    memory_mb: row.memory_mb,
    reserved: row.reserved === 1,
    lease: row.lease === null ? null : (JSON.parse(row.lease) as Lease),
    checks: row.checks === "{}" ? {} : (JSON.parse(row.checks) as Machine["checks"]),
    events: JSON.parse(row.events) as MachineEvent[],
    config: JSON.parse(row.config) as Machine["config"],
  };
}

/** The columns of `ShownMachine`, and their conversion. */
export const SHOWN = [
  "id",
  "name",
  "state",
  "region",
  "host_id",
  "instance_id",
  "private_ip",
  "private_ipv4",
  "created_at",
  "updated_at",
  "image_ref",
  "cordoned",
  "lease",
  "checks",
  "events",
]
  .map((column) => `m.${column}`)
  .join(", ");

export function toShown(row: MachineRow): ShownMachine {
  return {
    id: row.id,
    name: row.name,
    state: row.state,
    region: row.region,
    host_id: row.host_id,
    instance_id: row.instance_id,
    private_ip: row.private_ip,
    private_ipv4: row.private_ipv4,
    created_at: row.created_at,
    updated_at: row.updated_at,
    image_ref: JSON.parse(row.image_ref) as Machine["image_ref"],
    cordoned: row.cordoned === 1,
    lease: row.lease === null ? null : (JSON.parse(row.lease) as Lease),
    checks: row.checks === "{}" ? {} : (JSON.parse(row.checks) as Machine["checks"]),
    events: JSON.parse(row.events) as MachineEvent[],
    config: JSON.parse(row.config) as Machine["config"],
  };
}

export interface EventRow {
  seq: number;
  id: string;
  type: string;
  status: string;
  source: MachineEvent["source"];
  timestamp: number;
  request: string | null;
  machine_id: string;
  machine_name: string;
  app_name: string;
  instance_id: string;
}

export function toEvent({ request, ...row }: EventRow): LoggedEvent {
  return { ...row, ...(request === null ? {} : { request: JSON.parse(request) as EventRequest }) };
}

/** An operation joined to its machine; all null when there is none. */
export interface WorkRow {
  o_id: string | null;
  o_position: number;
  o_kind: Operation["kind"];
  o_payload: string;
  o_not_before: number | null;
  o_begun: number;
}

export function operationIn(row: Pick<Machine, "id" | "host_id"> & WorkRow): Operation[] {
  if (row.o_id === null) return [];
  return [
    {
      id: row.o_id,
      machine_id: row.id,
      host_id: row.host_id,
      position: row.o_position,
      kind: row.o_kind,
      payload: JSON.parse(row.o_payload) as Operation["payload"],
      not_before: row.o_not_before,
      begun: Boolean(row.o_begun),
    },
  ];
}
