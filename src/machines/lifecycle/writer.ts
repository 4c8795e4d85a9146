import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Change, Committed, Inserted, MachineStore } from "../store.ts";
import type { Machine, MachineEvent, Operation } from "../types.ts";
import { MachineTransaction } from "./transaction.ts";

/** What a change of a machine looks like to those who wait for it. */
export interface MachineUpdate {
  machine: Machine;
  /** Oldest first. */
  events: readonly MachineEvent[];
}

export const topics = {
  machine: (id: string): string => `machine:${id}`,
  org: (id: string): string => `org:${id}`,
  host: (id: string): string => `host:${id}`,
  /** Every machine there is. */
  every: "machines",
} as const;

/**
 * A machine as those see it who follow one host: one that has moved elsewhere is at rest there, with nothing to do, to
 * run or to wait for.
 */
export function seenFrom(topic: string, machine: Machine): Machine {
  if (!topic.startsWith("host:") || topic === topics.host(machine.host_id)) return machine;
  return { ...machine, state: "stopped", boot: null, pending: 0, deadline_at: null, next_run_at: null };
}

/** A machine and what is to be done to it, as of one moment. */
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
 * Reads a machine, lets somebody decide, and writes the decision if nothing has changed meanwhile; then tells
 * the bus. Everything that changes a machine goes through here.
 */
export class MachineWriter {
  readonly #parts: WriterParts;

  constructor(parts: WriterParts) {
    this.#parts = parts;
  }

  /**
   * Decides on a fresh draft until the decision could be written. `decide` may throw to refuse, or answer false
   * to leave everything as it is; it is called again, with what is there by then, when someone else was faster.
   */
  async change(
    id: string,
    decide: (transaction: MachineTransaction) => boolean,
    ids: Ids = this.#parts.ids,
  ): Promise<Machine> {
    return (await this.work(id, decide, undefined, ids)).machine;
  }

  /** The same for someone who has just read the machine, and goes on with it: `known` saves the first reading. */
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
