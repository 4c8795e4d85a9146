import type { AppRange } from "#apps/store.ts";
import type { PageRequest } from "#core/list-page.ts";
import type { Tenure } from "#hosts/types.ts";
import type { Run, RunChange, RunState } from "./runs/types.ts";
import type { LoggedEvent, Machine, MachineConfig, MachineEvent, Operation, ShownMachine } from "./types.ts";

/** One atomic change of one machine. */
export interface Change {
  /** The machine after the change; `revision` is already incremented. */
  machine: Machine;
  /** Oldest first. */
  events: readonly MachineEvent[];
  add_operations: readonly Operation[];
  /** Operations that begin or get a new payload. */
  put_operations: readonly Operation[];
  remove_operations: readonly string[];
  /** Runs that begin or end with it. */
  runs?: readonly RunChange[];
  /** The config is a new version, stored beside the earlier ones. */
  new_version: boolean;
  /** The metadata of this version's config was changed in place. */
  new_metadata: boolean;
  /** Capacity to reserve on the host, negative to release; undefined when unchanged. */
  reserve?: { cpus: number; memory_mb: number };
  /** The volume that a new machine attaches. It is detached when the machine is destroyed. */
  attach?: string;
  /**
   * The machine moves to another host: where it was, and what it releases there; `reserve` applies to the new one. With
   * an epoch, only if the old host is still lost in that tenure, so that a host that came back keeps its machines.
   */
  moved_from?: { host_id: string; epoch: number | null; cpus: number; memory_mb: number };
}

export type Committed =
  | "done"
  /** The machine changed since it was read. Nothing was written. */
  | "conflict"
  /** The host has too little capacity. Nothing was written. */
  | "capacity"
  /** It cannot move now: the other host still has its orphans, or its own host came back. Nothing was written. */
  | "unmoved";

export type Inserted =
  | "inserted"
  | "exists"
  | "name_taken"
  | "no_app"
  | "limit"
  | "capacity"
  /** Its volume was attached or deleted meanwhile. */
  | "volume";

export interface ListFilter {
  include_deleted?: boolean;
  region?: string;
  states?: readonly string[];
  metadata?: readonly (readonly [key: string, value: string])[];
  /** Starts after this `created_at` and id; all machines when absent. */
  page?: PageRequest<readonly [created_at: number, id: string]>;
}

export interface OrgListFilter extends Omit<ListFilter, "metadata" | "page"> {
  /** Only machines on these hosts. */
  host_ids?: readonly string[];
  /** Words in lower case: each occurs in the name, id, app, region, image or address. */
  search?: readonly string[];
  /** By `updated_at` when absent. Only by creation does a machine keep its place. */
  order?: "changed" | "created";
  page: PageRequest<readonly [updated_or_created_at: number, id: string]>;
}

/** Numbers of machines by state, without states that have none. */
export type StateCounts = Partial<Record<Machine["state"], number>>;

export interface RunFilter {
  machine_id?: string;
  states?: readonly RunState[];
  page: PageRequest<readonly [started_at: number, id: string]>;
}

export interface StateCount {
  app_id: string;
  state: Machine["state"];
  host_id: string;
  machines: number;
}

export interface EventFilter {
  org_id: string;
  app_id?: string;
  after: number;
  limit: number;
}

export interface LogPage {
  events: LoggedEvent[];
  /** There are more, which may not be returned yet: a write that precedes them is still under way. */
  behind: boolean;
}

/**
 * Stores machines, configs, events and unfinished operations; decides nothing, reads no clock. Implemented in stores/,
 * tested by `store.suite.ts`.
 */
export interface MachineStore {
  find(id: string): Promise<Machine | undefined>;
  /** The machine and its unfinished operations in order, read together. */
  findWork(id: string): Promise<{ machine: Machine; operations: Operation[] } | undefined>;
  /** Ordered by creation. */
  list(app_id: string, filter: ListFilter): Promise<ShownMachine[]>;
  /** A page of an organization's machines, in its order, then by id. */
  listOrg(org_id: string, filter: OrgListFilter): Promise<Machine[]>;
  /** An organization's machines by state, destroyed ones apart; when there are more than `limit`, any that many. */
  countStates(org_id: string, filter: Pick<OrgListFilter, "search" | "region">, limit: number): Promise<StateCounts>;
  /** Machines of an app that are not destroyed. */
  count(app_id: string): Promise<number>;
  /** Like `count`, by app id, for apps that have machines. */
  counts(range: AppRange): Promise<ReadonlyMap<string, number>>;

  /**
   * Writes a new machine with its first event and operations. "exists": the id exists, from an earlier run of the same
   * request. Nothing is written unless the result is "inserted".
   */
  insert(change: Change, limit: number): Promise<Inserted>;
  /** Writes the change if the machine's revision is unchanged. */
  commit(change: Change): Promise<Committed>;

  /** How many machines of each app are in each state on each host, destroyed ones apart. */
  stateCounts(range: AppRange): Promise<StateCount[]>;
  /** The oldest machines of each app, at most `limit` of each, in states if some are given; ordered by creation. */
  oldestOfEach(
    range: AppRange,
    filter: { states?: readonly string[]; limit: number },
  ): Promise<(ShownMachine & { app_id: string })[]>;

  /** Ids of machines with unfinished operations, for a starting executor. */
  unfinished(host_ids: readonly string[]): Promise<string[]>;
  /** Machines with a boot (running or frozen), in a transitional state, or with a schedule. */
  alive(host_ids: readonly string[]): Promise<Machine[]>;
  /** Whether there are any on a host. */
  anyAlive(host_id: string): Promise<boolean>;
  /** All machines on a host that are not destroyed. */
  onHost(host_id: string): Promise<Machine[]>;
  /** Like `alive`, on all hosts. */
  aliveAnywhere(): Promise<Machine[]>;
  /** Machines changed since a time, by the wall clocks of their writers. */
  changed(since_ms: number): Promise<{ id: string; revision: number }[]>;
  /** Machines that moved away from a host and may have left something there. */
  leftovers(host_id: string): Promise<string[]>;
  /** Records that nothing of it is left on the host. */
  clearedAway(host_id: string, machine_id: string): Promise<void>;
  /**
   * Exempt machines of a host: they keep running without its lease, and neither they nor their standbys are started
   * elsewhere.
   */
  exempt(host_id: string): Promise<string[]>;
  /** Running machines of a host whose exemption is wrong: exempt though another host may start them, or the reverse. */
  misfenced(host_id: string): Promise<{ id: string; boot: string; may_leave: boolean }[]>;
  /** Marks those that no other host may start as exempt for this boot. Returns which; none when the tenure is over. */
  addExempt(tenure: Tenure, machines: readonly { id: string; boot: string }[]): Promise<string[]>;
  /** Removes the exemption; nothing is changed when the tenure is over. */
  removeExempt(tenure: Tenure, machine_ids: readonly string[]): Promise<void>;
  /** Standbys of `machine_id`. */
  standbys(machine_id: string): Promise<Machine[]>;

  /** Newest first; `before` and `after` are log positions. */
  events(machine_id: string, page: { after?: number; before?: number; limit: number }): Promise<LoggedEvent[]>;
  /** The log position of an event, if it belongs to the machine. */
  eventSeq(machine_id: string, event_id: string): Promise<number | undefined>;
  /** Of an organization or one of its apps, oldest first: no later event has a lower position. */
  log(filter: EventFilter): Promise<LogPage>;
  /** A position in an organization's log: events returned so far are at or before it, all later ones after it. */
  logEnd(org_id: string): Promise<number>;
  /** The position after which this many events of an organization or app follow; 0 when there are no more. */
  logTail(scope: Pick<EventFilter, "org_id" | "app_id">, events: number): Promise<number>;

  /** A run, and when the next one of its machine began: what the machine wrote from then on belongs to that. */
  run(app_id: string, id: string): Promise<{ run: Run; next_at: number | null; host_id?: string } | undefined>;
  /** Newest first. */
  runs(app_id: string, filter: RunFilter): Promise<Run[]>;

  /** Newest first. */
  versions(machine_id: string): Promise<{ instance_id: string; created_at: number; config: MachineConfig }[]>;
  /** Adds up how many machines organizations have, so that counting them stays cheap. */
  foldCounts(): Promise<void>;
  /** Forgets machines that were destroyed before, with all that belongs to them. */
  purge(before_ms: number): Promise<number>;
}
