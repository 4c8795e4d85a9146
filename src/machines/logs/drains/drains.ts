/**
 * Sends the log lines of this host's machines to the drains of their organizations. The kept logs are the queue: a drain
 * has a position in each machine's log, stored beside it, which goes on only when the receiver has taken the lines. So
 * nothing is lost while it is away, for as long as logs are kept, and after a crash the last batch may be sent twice.
 */
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { Slots } from "#core/slots.ts";
import { MACHINE_LIMITS } from "../../limits.ts";
import type { MachineStore } from "../../store.ts";
import type { LogQueue } from "../queue.ts";
import { Delivery } from "./delivery.ts";
import type { DrainSender } from "./sender.ts";
import type { DrainStore } from "./store.ts";
import type { Drain, DrainMachine, DrainState, DrainTarget } from "./types.ts";

export interface LogDrainParts {
  store: DrainStore;
  machines: Pick<MachineStore, "find">;
  queue: LogQueue;
  sender: DrainSender;
  sealer: Sealer;
  tokens: {
    /** Why a token is no longer valid, or undefined. */
    fallen(token_id: string): Promise<string | undefined>;
    isFullAccess(token_id: string): Promise<boolean>;
  };
  host_id: string;
  clock: Clock;
  log: Log;
}

/** Whose a machine's lines are; null when the machine is not known. */
type Owned = (DrainMachine & { org_id: string; app_id: string }) | null;

/** Sealed targets are bound to their drain. */
export const sealName = (id: string): string => `log drain:${id}`;

export class LogDrains {
  readonly #parts: LogDrainParts;
  readonly #deliveries = new Map<string, Delivery>();
  readonly #owned = new Map<string, Owned>();
  readonly #slots = new Slots(MACHINE_LIMITS.drains_at_once);
  readonly #closing = new AbortController();
  #wake = new AbortController();
  #listed_at = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;

  constructor(parts: LogDrainParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Drains were created or deleted. */
  changed(): void {
    this.#listed_at = Number.NEGATIVE_INFINITY;
    this.#wake.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake.abort();
    await this.#parts.sender.close();
    await this.#running;
    await Promise.all([...this.#deliveries.values()].map((delivery) => delivery.stop()));
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#closing.signal.aborted) {
      this.#wake = new AbortController();
      await this.look().catch((error: unknown) => log.warn({ error }, "log drains could not be looked at"));
      if (this.#closing.signal.aborted) return;
      await clock.sleep(MACHINE_LIMITS.drain_look_ms, this.#wake.signal).catch(() => {});
    }
  }

  /** Begins to send what machines wrote. */
  async look(): Promise<void> {
    const { clock } = this.#parts;
    if (clock.now() - this.#listed_at >= MACHINE_LIMITS.drain_list_ms) await this.#list();
    if (this.#deliveries.size === 0) return;
    const machines = await this.#machines();
    for (const delivery of this.#deliveries.values()) {
      const { org_id, app_id } = delivery.drain;
      delivery.wake(machines.filter((one) => one.org_id === org_id && (app_id === null || one.app_id === app_id)));
      await delivery.saveIfDue();
    }
  }

  async #list(): Promise<void> {
    const { store, queue, host_id, clock } = this.#parts;
    this.#listed_at = clock.now();
    const drains = new Map((await store.drains()).map((drain) => [drain.id, drain]));
    const gone = [...this.#deliveries.keys()].filter((id) => !drains.has(id));
    for (const id of gone) {
      // What is being sent now keeps the other drains waiting no longer.
      void this.#deliveries.get(id)?.stop();
      this.#deliveries.delete(id);
    }
    const added = [...drains.values()].filter(({ id }) => !this.#deliveries.has(id));
    if (added.length > 0) {
      const states = new Map((await store.hostStates(host_id)).map((state) => [state.drain_id, state]));
      for (const drain of added)
        this.#deliveries.set(drain.id, this.#deliver(drain, states.get(drain.id) ?? nothingSent(drain.id, host_id)));
    }
    if (added.length > 0 || gone.length > 0) await queue.forget(new Set(drains.keys()));
  }

  #deliver(drain: Drain, state: DrainState): Delivery {
    const { queue, store, sender, clock, log } = this.#parts;
    const prepare = (one: Drain) => this.#prepare(one);
    return new Delivery(drain, state, { queue, store, sender, slots: this.#slots, clock, log, prepare });
  }

  async #prepare({ id, target, token_id }: Drain) {
    const { sealer, tokens } = this.#parts;
    const fallen = await tokens.fallen(token_id);
    if (fallen) return `the token that made this drain ${fallen}`;
    const opened = JSON.parse(sealer.open(sealName(id), target).toString()) as DrainTarget;
    return { target: opened, trusted: await tokens.isFullAccess(token_id) };
  }

  async #machines(): Promise<NonNullable<Owned>[]> {
    const { queue, machines } = this.#parts;
    const ids = await queue.machines();
    const present = new Set(ids);
    for (const id of this.#owned.keys()) if (!present.has(id)) this.#owned.delete(id);
    for (const id of ids) {
      if (this.#owned.has(id)) continue;
      const found = await machines.find(id);
      if (!found) this.#owned.set(id, null);
      else {
        const { name, org_id, app_id, app_name, region } = found;
        this.#owned.set(id, { id, name, org_id, app_id, app_name, region });
      }
    }
    return [...this.#owned.values()].filter((one) => one !== null);
  }
}

const nothingSent = (drain_id: string, host_id: string): DrainState => ({
  drain_id,
  host_id,
  sent: 0,
  refused: 0,
  lost_gaps: 0,
  lost_bytes: 0,
  oldest_at: null,
  last_success_at: null,
  last_error: null,
  failures: 0,
  updated_at: 0,
});
