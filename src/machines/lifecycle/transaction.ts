import { assert } from "#core/assert.ts";
import type { Ids } from "#core/ids.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { endOf, isTask, runChange, skippedRun } from "../runs/record.ts";
import type { RunChange } from "../runs/types.ts";
import type { Change } from "../store.ts";
import type { EventRequest, Machine, MachineEvent, Operation, OperationPayload, Place, Source } from "../types.ts";
import { type Action, after, DEADLINES_MS, EVENT_TYPES, type MachineState, next, type Trigger } from "./states.ts";

/**
 * A change of one machine before it is written: what was read, and what will be written. Only this class changes a
 * machine's state, and never without an event.
 */
export class MachineTransaction {
  machine: Machine;
  /** Unfinished operations after this change, in order. */
  operations: Operation[];
  readonly #before: Machine | undefined;
  readonly #now: number;
  readonly #ids: Ids;
  readonly #events: MachineEvent[] = [];
  readonly #runs: RunChange[] = [];
  readonly #known: ReadonlySet<string>;
  readonly #touched = new Set<string>();
  #attach: string | undefined;
  #lost_epoch: number | undefined;
  #new_version = false;
  #new_metadata = false;

  constructor(
    read: { machine: Machine; operations: readonly Operation[] },
    parts: { now: number; ids: Ids; fresh?: boolean },
  ) {
    this.#before = parts.fresh ? undefined : read.machine;
    this.#now = parts.now;
    this.#ids = parts.ids;
    this.machine = read.machine;
    this.operations = [...read.operations];
    this.#known = new Set(read.operations.map((operation) => operation.id));
  }

  /** The state after all queued operations. */
  get projected(): MachineState {
    return this.operations.reduce(
      (state, { kind, payload }) => after(state, kind, payload.launch ?? true),
      this.machine.state,
    );
  }

  set(fields: Partial<Machine>): void {
    this.machine = { ...this.machine, ...fields };
  }

  /** Sets a new config under a new instance id. */
  replaceConfig(fields: Partial<Machine> & Pick<Machine, "config" | "instance_id">): void {
    this.set(fields);
    this.#new_version = true;
  }

  /** Attaches the volume to this machine from its creation on. */
  attach(volume_id: string): void {
    this.#attach = volume_id;
  }

  /**
   * Assigns the machine to another host, which does its remaining operations. `lost_epoch` is the tenure in which the
   * old host was lost; the write applies only while it still is.
   */
  move(place: Place, lost_epoch?: number): void {
    this.set({ ...place, private_ipv4: null });
    this.#lost_epoch = lost_epoch;
    for (const operation of this.operations) this.put({ ...operation, host_id: place.host_id });
  }

  setMetadata(metadata: Record<string, string>): void {
    this.set({ config: { ...this.machine.config, metadata } });
    this.#new_metadata = true;
  }

  transition(trigger: Trigger, source: Source, request?: EventRequest): void {
    const state = next(this.machine.state, trigger);
    assert(state, `a machine that is ${this.machine.state} cannot be ${trigger}`);
    const deadline = DEADLINES_MS[state];
    this.set({ state, deadline_at: deadline === undefined ? null : this.#now + deadline });
    this.recordEvent(EVENT_TYPES[trigger], state, source, request);
  }

  /** Records an event without a state change. */
  recordEvent(type: string, status: string, source: Source, request?: EventRequest): void {
    // The clock may have been set back; event timestamps never decrease.
    const timestamp = Math.max(this.#now, this.machine.events[0]?.timestamp ?? 0);
    const event: MachineEvent = {
      id: this.#ids.ulid(),
      type,
      status,
      source,
      timestamp,
      ...(request ? { request } : {}),
    };
    this.#events.push(event);
    const run = runChange(this.machine, event, this.operations[0]?.payload.by ?? source);
    if (run) this.#runs.push(run);
    this.set({ events: [event, ...this.machine.events].slice(0, MACHINE_LIMITS.events_shown) });
  }

  /** Records a scheduled run that does not take place. */
  skipRun(): void {
    this.#runs.push({ skip: skippedRun(this.machine, this.#ids.ulid(), this.#now) });
  }

  /** Appends an operation. The state shows it once it begins. */
  queue(kind: Action, payload: OperationPayload, not_before: number | null = null): Operation {
    const { id: machine_id, host_id } = this.machine;
    const operation: Operation = {
      id: this.#ids.ulid(),
      machine_id,
      host_id,
      position: (this.operations.at(-1)?.position ?? 0) + 1,
      kind,
      payload,
      not_before,
      begun: false,
    };
    this.operations.push(operation);
    return operation;
  }

  /** Sets the state to that of the operation. */
  begin(operation: Operation): void {
    const { source, reason } = operation.payload;
    this.transition(operation.kind, source, reason === undefined ? undefined : { reason });
    this.put({ ...operation, begun: true });
  }

  put(operation: Operation): void {
    this.operations = this.operations.map((one) => (one.id === operation.id ? operation : one));
    this.#touched.add(operation.id);
  }

  finish(operation: Operation): void {
    this.operations = this.operations.filter((one) => one.id !== operation.id);
  }

  /** Returns what is to be written. */
  change(): Change {
    const before = this.#before;
    const reserved = this.#reserves();
    const machine: Machine = {
      ...this.machine,
      reserved,
      pending: this.operations.length,
      revision: before ? before.revision + 1 : 1,
      updated_at: Math.max(this.#now, this.machine.updated_at),
    };
    this.machine = machine;
    const left = new Set(this.operations.map((operation) => operation.id));
    const moved = before !== undefined && before.host_id !== machine.host_id;
    const had = before && !moved ? taken(before) : NOTHING;
    const reserve = {
      cpus: taken(machine).cpus - had.cpus,
      memory_mb: taken(machine).memory_mb - had.memory_mb,
    };
    // An update or new metadata may turn a task into something else while it runs.
    if (before && isTask(before.config) && !isTask(machine.config))
      this.#runs.unshift({ end: endOf("stopped", this.#now) });
    return {
      machine,
      events: this.#events,
      runs: this.#runs,
      add_operations: this.operations.filter(({ id }) => !this.#known.has(id)),
      put_operations: this.operations.filter(({ id }) => this.#known.has(id) && this.#touched.has(id)),
      remove_operations: [...this.#known].filter((id) => !left.has(id)),
      new_version: this.#new_version || before === undefined,
      new_metadata: this.#new_metadata,
      ...(reserve.cpus === 0 && reserve.memory_mb === 0 ? {} : { reserve }),
      ...(this.#attach === undefined ? {} : { attach: this.#attach }),
      ...(moved ? { moved_from: { host_id: before.host_id, epoch: this.#lost_epoch ?? null, ...taken(before) } } : {}),
    };
  }

  /** Capacity is reserved while the machine runs, is frozen in memory, or is about to run. */
  #reserves(): boolean {
    const { boot, state, snapshot } = this.machine;
    if (state === "destroyed") return false;
    if (boot !== null && !(state === "suspended" && snapshot)) return true;
    if (state === "starting" || state === "restarting") return true;
    return this.operations.some(({ kind, payload }) => launches(kind, payload));
  }
}

const launches = (kind: Action, payload: OperationPayload): boolean =>
  kind === "start" || kind === "restart" || (kind === "update" && payload.launch === true);

const NOTHING = { cpus: 0, memory_mb: 0 };

const taken = ({ reserved, cpus, memory_mb }: Machine): { cpus: number; memory_mb: number } =>
  reserved ? { cpus, memory_mb } : NOTHING;
