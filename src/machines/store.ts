import type { PageRequest } from "#core/list-page.ts";
import type { Tenure } from "#hosts/types.ts";
import type { LoggedEvent, Machine, MachineConfig, MachineEvent, Operation, ShownMachine } from "./types.ts";

/** One change of one machine: everything in it happens, or nothing. */
export interface Change {
  /** The machine as it shall be; `revision` is already the next one. */
  machine: Machine;
  /** Oldest first. */
  events: readonly MachineEvent[];
  add_operations: readonly Operation[];
  /** Operations that are begun or given a new payload. */
  put_operations: readonly Operation[];
  remove_operations: readonly string[];
  /** The config is a new version: it is kept beside the ones before. */
  new_version: boolean;
  /** The config of this version was changed in place: its metadata. */
  new_metadata: boolean;
  /** What to take from the host, negative to give back; undefined when it does not change. */
  reserve?: { cpus: number; memory_mb: number };
  /** Of a new machine: the volume it takes for itself. It gives it back when it is destroyed. */
  attach?: string;
  /**
   * The machine goes to another host: where it was, and what it gives back there. `reserve` is for the new one. With
   * an epoch only if the host it leaves is still lost in that tenure, so that one that has come back keeps its own.
   */
  moved_from?: { host_id: string; epoch: number | null; cpus: number; memory_mb: number };
}

export type Committed =
  | "done"
  /** Somebody else changed the machine since it was read. Nothing was written. */
  | "conflict"
  /** The host has not enough left. Nothing was written. */
  | "capacity"
  /** It cannot move now: the other host still has something of an earlier stay, or its own has come back. The same. */
  | "unmoved";

export type Inserted =
  | "inserted"
  | "exists"
  | "name_taken"
  | "no_app"
  | "limit"
  | "capacity"
  /** Its volume is no longer free, or no longer there. */
  | "volume";

export interface ListFilter {
  include_deleted?: boolean;
  region?: string;
  states?: readonly string[];
  metadata?: readonly (readonly [key: string, value: string])[];
  /** After a machine's `created_at` and id; all when left out. */
  page?: PageRequest<readonly [created_at: number, id: string]>;
}

export interface OrgListFilter extends Omit<ListFilter, "metadata" | "page"> {
  page: PageRequest<readonly [updated_at: number, id: string]>;
}

export interface EventFilter {
  org_id: string;
  app_id?: string;
  after: number;
  limit: number;
}

/**
 * Keeps and finds machines, their configs, events and unfinished operations; decides nothing, reads no clock.
 * Implemented in stores/, examined by `store.suite.ts`.
 */
export interface MachineStore {
  find(id: string): Promise<Machine | undefined>;
  /** The machine and its unfinished operations in order, both as of one moment. */
  findWork(id: string): Promise<{ machine: Machine; operations: Operation[] } | undefined>;
  /** By creation. */
  list(app_id: string, filter: ListFilter): Promise<ShownMachine[]>;
  /** A page of an organization's, by `updated_at` then id. */
  listOrg(org_id: string, filter: OrgListFilter): Promise<Machine[]>;
  /** Machines of an app that are not destroyed. */
  count(app_id: string): Promise<number>;
  /** The same of the organization's apps that have any, or of some of them, by the app's id. */
  counts(org_id: string, app_ids?: readonly string[]): Promise<ReadonlyMap<string, number>>;

  /**
   * Writes a new machine with its first event and operations. "exists": this very id is already there, from an
   * earlier run of the same request. Nothing is written unless it is "inserted".
   */
  insert(change: Change, limit: number): Promise<Inserted>;
  /** Writes the change if the machine's revision is still the one before. */
  commit(change: Change): Promise<Committed>;

  /** What an executor takes up when it starts: ids of machines with unfinished operations. */
  unfinished(host_ids: readonly string[]): Promise<string[]>;
  /** Machines with a boot (running or frozen), or in a state that passes, or on a schedule. */
  alive(host_ids: readonly string[]): Promise<Machine[]>;
  /** Everything on a host that is not destroyed. */
  onHost(host_id: string): Promise<Machine[]>;
  /** Those alive, wherever they are. */
  aliveAnywhere(): Promise<Machine[]>;
  /** Machines that changed since, by the wall clocks of those who changed them. */
  changed(since_ms: number): Promise<{ id: string; revision: number }[]>;
  /** Machines that have moved away from a host and may have left something there. */
  leftovers(host_id: string): Promise<string[]>;
  /** Nothing of it is left on the host. */
  clearedAway(host_id: string, machine_id: string): Promise<void>;
  /** Machines of a host that run on without its lease: nobody else may start them, or what stands by for them. */
  exempt(host_id: string): Promise<string[]>;
  /** Machines that run on a host and are exempt though another host may start them, or are not though none may. */
  misfenced(host_id: string): Promise<{ id: string; boot: string; may_leave: boolean }[]>;
  /** Makes them exempt in this boot, those that no other host may start. Answers which; none when the tenure is over. */
  addExempt(tenure: Tenure, machines: readonly { id: string; boot: string }[]): Promise<string[]>;
  /** Others may start them from here on; nothing is changed when the tenure is over. */
  removeExempt(tenure: Tenure, machine_ids: readonly string[]): Promise<void>;
  /** Machines that stand by for `machine_id`. */
  standbys(machine_id: string): Promise<Machine[]>;

  /** Newest first; `before` and `after` are places in the log. */
  events(machine_id: string, page: { after?: number; before?: number; limit: number }): Promise<LoggedEvent[]>;
  /** Where an event stands in the log of its machine, if it is one of it. */
  eventSeq(machine_id: string, event_id: string): Promise<number | undefined>;
  /** Of an organization or one of its apps, oldest first. */
  log(filter: EventFilter): Promise<LoggedEvent[]>;
  /** The newest place in an organization's log; 0 when it is empty. */
  logEnd(org_id: string): Promise<number>;

  /** Newest first. */
  versions(machine_id: string): Promise<{ instance_id: string; created_at: number; config: MachineConfig }[]>;
  /** Forgets machines that were destroyed before, with all that belongs to them. */
  purge(before_ms: number): Promise<number>;
}
