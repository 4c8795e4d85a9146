import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { forgetPrefetched } from "#core/prefetched.ts";
import { readinessChecks } from "../config/configured-checks.ts";
import { isPersistent, STATE_ALIASES, STATES } from "../lifecycle/states.ts";
import { type MachineUpdate, topics } from "../lifecycle/writer.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { MachineStore } from "../store.ts";
import type { Machine, MachineEvent } from "../types.ts";

export interface WaitInput {
  states: readonly string[];
  instance_id?: string | undefined;
  /** Only events after this one count. */
  from_event_id?: string | undefined;
  timeout_s: number;
}

export interface Reached {
  state: string;
  version: string;
  event_id: string;
}

/** Conditions beside the names of states. */
const CONDITIONS: Record<string, (machine: Machine) => boolean> = {
  /** No operation is running or waiting. */
  settled: (machine) => machine.pending === 0 && isPersistent(machine.state),
  /** Running, with all readiness checks passing. */
  healthy: (machine) => {
    if (machine.state !== "started") return false;
    return readinessChecks(machine).every((name) => machine.checks[name]?.status === "passing");
  },
};

export const WAIT_STATES = [...STATES, ...Object.keys(STATE_ALIASES), ...Object.keys(CONDITIONS)];

interface WaitParts {
  store: MachineStore;
  bus: Bus<MachineUpdate>;
  clock: Clock;
}

/** Waits for machine states. Driven by the bus, without polling. */
export class Waits {
  readonly #parts: WaitParts;

  constructor(parts: WaitParts) {
    this.#parts = parts;
  }

  /** Resolves when the machine is in one of the states, or has passed through one. */
  async wait(id: string, input: WaitInput, signal: AbortSignal): Promise<Reached> {
    const { bus, clock } = this.#parts;
    const states = input.states.map((name) => STATE_ALIASES[name] ?? name);
    const over = new AbortController();
    const stop = AbortSignal.any([over.signal, signal]);
    const heard = Promise.withResolvers<Reached>();
    // Subscribes before reading, so that no change in between is missed.
    const end = bus.subscribe(topics.machine(id), (update) => {
      const reached = reachedBy(update.machine, update.events, states, input.instance_id);
      if (reached) heard.resolve(reached);
      else if (update.machine.state === "destroyed") heard.reject(destroyedError(id));
      else if (isReplaced(update.machine, input)) heard.reject(replaced(update.machine, input));
    });
    heard.promise.catch(() => {});
    try {
      // What was read before this process listened may be older than what it missed.
      forgetPrefetched();
      const seen = await this.#look(id, input, states);
      if (seen) return seen;
      const timeout_ms = Math.min(input.timeout_s, MACHINE_LIMITS.wait_max_s) * 1000;
      const late = clock.sleep(timeout_ms, stop).then(
        () => undefined,
        () => undefined,
      );
      const reached = await Promise.race([heard.promise, late]);
      if (!reached && signal.aborted)
        fail("shutting_down", "the platform is shutting down, or the client disconnected");
      // Reads once more at the end, in case the notification of a change did not reach this process.
      return reached ?? (await this.#look(id, input, states)) ?? (await this.#tooLate(id, input.states));
    } finally {
      end();
      over.abort();
    }
  }

  async #look(id: string, input: WaitInput, states: readonly string[]): Promise<Reached | undefined> {
    const { store } = this.#parts;
    const machine = (await store.find(id)) ?? fail("not_found", `machine not found: ${id}`);
    if (isReplaced(machine, input)) throw replaced(machine, input);
    if (input.from_event_id !== undefined) {
      const after = await store.eventSeq(id, input.from_event_id);
      if (after === undefined) badEvent(input.from_event_id);
      const since = await store.events(id, { after, limit: MACHINE_LIMITS.events_page });
      return since.length === 0 ? undefined : reachedBy(machine, since.toReversed(), states, input.instance_id);
    }
    const reached = reachedBy(machine, [], states, input.instance_id);
    if (!reached && machine.state === "destroyed") throw destroyedError(id);
    return reached;
  }

  async #tooLate(id: string, states: readonly string[]): Promise<never> {
    const machine = await this.#parts.store.find(id);
    const current_state = machine?.state ?? "destroyed";
    fail("wait_timeout", `machine failed to reach desired state, ${states.join(" or ")}, currently ${current_state}`, {
      facts: { current_state, instance_id: machine?.instance_id, last_event: machine?.events[0] },
    });
  }
}

function reachedBy(
  machine: Machine,
  events: readonly MachineEvent[],
  states: readonly string[],
  instance_id: string | undefined,
): Reached | undefined {
  if (instance_id !== undefined && machine.instance_id !== instance_id && machine.state !== "destroyed")
    return undefined;
  const passed = events.find((event) => states.includes(event.status));
  const now = states.some((state) => CONDITIONS[state]?.(machine) ?? machine.state === state);
  if (!now && !passed) return undefined;
  return {
    state: now ? machine.state : (passed?.status ?? machine.state),
    version: machine.instance_id,
    event_id: (now ? undefined : passed?.id) ?? machine.events[0]?.id ?? "",
  };
}

const isReplaced = (machine: Machine, { instance_id }: WaitInput): boolean =>
  instance_id !== undefined && machine.instance_id !== instance_id && machine.state !== "destroyed";

const replaced = (machine: Machine, { instance_id, states }: WaitInput): ApiError =>
  new ApiError(
    "version_conflict",
    `machine failed to reach desired state, ${states.join(" or ")}, currently replaced: ${instance_id} is not the current version`,
    { facts: { current_state: machine.state, instance_id: machine.instance_id } },
  );

const destroyedError = (id: string): ApiError => new ApiError("not_found", `machine not found: ${id} is destroyed`);

function badEvent(event_id: string): never {
  fail(
    "invalid_request",
    `query.from_event_id ${JSON.stringify(event_id.slice(0, 64))} is not an event of this machine`,
    {
      details: [{ path: "query.from_event_id", problem: "is not an event of this machine" }],
    },
  );
}
