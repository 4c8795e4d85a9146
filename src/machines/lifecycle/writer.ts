import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Change, Committed, Inserted, MachineStore } from "../store.ts";
import type { Machine, MachineEvent, Operation } from "../types.ts";
import { MachineTransaction } from "./transaction.ts";

/** A machine's change as published to subscribers. */
export interface MachineUpdate {
  machine: Machine;
  /** Oldest first. */
  events: readonly MachineEvent[];
}

export const topics = {
  machine: (id: string): string => `machine:${id}`,
  org: (id: string): string => `org:${id}`,
  host: (id: string): string => `host:${id}`,
  /** Every machine. */
  every: "machines",
} as const;

/**
 * A machine as subscribers of one host see it: one that moved elsewhere appears at rest, without operations, boot or
 * schedule.
 */
export function seenFrom(topic: string, machine: Machine): Machine {
  if (!topic.startsWith("host:") || topic === topics.host(machine.host_id)) return machine;
  return { ...machine, state: "stopped", boot: null, pending: 0, deadline_at: null, next_run_at: null };
}

/** A machine and its operations, read together. */
export interface Work {
  machine: Machine;
  operations: Operation[];
}

interface WriterParts {
  store: MachineStore;
  bus: Bus<MachineUpdate>;
  clock: Clock;
  ids: Ids;
}

/**
 * Reads a machine, applies a decision, writes it if nothing changed meanwhile, and publishes the update. Every change
 * of a machine goes through here.
 */
export class MachineWriter {
  readonly #parts: WriterParts;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  /**
   * Repeats `decide` on a freshly read transaction until the write succeeds. It may throw to refuse, or return false to
   * change nothing; after a concurrent change it is called again.
   */
  async change(
    id: string,
    decide: (transaction: MachineTransaction) => boolean,
    ids: Ids = this.#parts.ids,
  ): Promise<Machine> {
    return (await this.work(id, decide, undefined, ids)).machine;
  }

  /** Like `change`, for a caller that has just read the machine: `known` saves the first read. */
  async work(
    id: string,
    decide: (transaction: MachineTransaction) => boolean,
    known: Work | undefined,
    ids: Ids = this.#parts.ids,
  ): Promise<Work> {
    const { store, clock } = this.#parts;
    let read = known;
    for (let race = 0; race < MACHINE_LIMITS.write_races; race++) {
      read ??= (await store.findWork(id)) ?? fail("not_found", `machine not found: ${id}`);
      const transaction = new MachineTransaction(read, { now: clock.now(), ids });
      if (!decide(transaction)) return read;
      const committed = await this.commit(transaction);
      if (committed === "done") return { machine: transaction.machine, operations: transaction.operations };
      if (committed === "capacity") outOfRoom(transaction.machine);
      if (committed === "unmoved") unmoved(transaction.machine);
      read = undefined;
    }
    fail("conflict", `machine ${id} was changed by too many concurrent requests; try again`, { retry_after_s: 1 });
  }

  async insert(
    machine: Machine,
    decide: (transaction: MachineTransaction) => void,
    ids: Ids,
  ): Promise<{ result: Inserted; machine: Machine }> {
    const { store, bus, clock } = this.#parts;
    const transaction = new MachineTransaction({ machine, operations: [] }, { now: clock.now(), ids, fresh: true });
    decide(transaction);
    const change = transaction.change();
    const result = await store.insert(change, MACHINE_LIMITS.machines_per_org);
    if (result === "inserted") publish(bus, change);
    return { result, machine: transaction.machine };
  }

  async commit(transaction: MachineTransaction): Promise<Committed> {
    const { store, bus } = this.#parts;
    const change = transaction.change();
    const committed = await store.commit(change);
    if (committed === "done") publish(bus, change);
    return committed;
  }
}

function publish(bus: Bus<MachineUpdate>, { machine, events, moved_from }: Change): void {
  const update: MachineUpdate = { machine, events };
  bus.publish(topics.machine(machine.id), update);
  bus.publish(topics.host(machine.host_id), update);
  bus.publish(topics.every, update);
  if (events.length > 0) bus.publish(topics.org(machine.org_id), update);
  if (moved_from === undefined) return;
  const left = topics.host(moved_from.host_id);
  bus.publish(left, { machine: seenFrom(left, machine), events: [] });
}

function unmoved({ id, host_id }: Machine): never {
  fail(
    "conflict",
    `machine ${id} cannot move to host ${host_id} yet: something of it is left there, or the host it leaves has come back`,
    {
      retry_after_s: 1,
    },
  );
}

function outOfRoom({ id, host_id, cpus, memory_mb }: Machine): never {
  fail(
    "insufficient_capacity",
    `could not reserve resource for machine: insufficient memory or cpus available to fulfill request (${id} needs ${cpus} cpus and ${memory_mb} MB on host ${host_id})`,
    { retry_after_s: 5, hint: "stop another machine there, or make this one smaller" },
  );
}
