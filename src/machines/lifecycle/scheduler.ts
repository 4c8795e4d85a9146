import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { Timers } from "#core/timers.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { MachineStore } from "../store.ts";
import type { Machine } from "../types.ts";
import { accept } from "./accept.ts";
import { dueAt, nextRun } from "./schedule.ts";
import { type MachineUpdate, type MachineWriter, topics } from "./writer.ts";

interface SchedulerParts {
  host_ids: readonly string[];
  store: MachineStore;
  writer: MachineWriter;
  bus: Bus<MachineUpdate>;
  clock: Clock;
  log: Log;
  /** Time for which logs are kept; destroyed machines are kept as long. */
  logs_kept_ms?: number | undefined;
}

/**
 * Queues operations without a request: scheduled starts, standby starts, and purging of destroyed machines. Due
 * times are in the store; the timers here can be set again at any time.
 */
export class Scheduler {
  readonly #parts: SchedulerParts;
  readonly #timers: Timers;
  readonly #ends: (() => void)[] = [];

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  async start(): Promise<void> {
    const { host_ids, bus, store } = this.#parts;
    for (const id of host_ids) this.#ends.push(bus.subscribe(topics.host(id), ({ machine }) => this.#plan(machine)));
    for (const machine of await store.alive(host_ids)) this.#plan(machine);
    this.#purgeLater();
    this.#foldLater();
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#timers.close();
  }

  /** Starts the standbys of the host's running machines. */
  async hostFailed(host_id: string): Promise<void> {
    const { store } = this.#parts;
    // Exempt machines are assumed to run there still.
    const exempt = new Set(await store.exempt(host_id));
    for (const machine of await store.alive([host_id])) {
      if (machine.boot === null || machine.state === "suspended" || exempt.has(machine.id)) continue;
      for (const standby of await store.standbys(machine.id)) {
        if (standby.app_id !== machine.app_id || standby.host_id === host_id) continue;
        await this.#startStandby(standby.id, `${machine.id} on failed host ${host_id}`);
      }
    }
  }

  #plan(machine: Machine): void {
    const { id, next_run_at, state } = machine;
    const now = this.#parts.clock.now();
    if (next_run_at === null || state === "destroyed") this.#timers.cancel(id);
    else this.#timers.set(id, dueAt(machine, now) === next_run_at ? next_run_at - now : 0, () => void this.#run(id));
  }

  /** Starts a scheduled machine and stores its next run, in one write. */
  async #run(id: string): Promise<void> {
    const { writer, clock } = this.#parts;
    try {
      await writer.change(id, (transaction) => {
        const { next_run_at, config, created_at, state } = transaction.machine;
        if (next_run_at === null || !config.schedule || state === "destroyed" || state === "destroying") return false;
        const now = clock.now();
        // The wall clock was set back: it is not time yet, but the wait must not last as long as the clock was wrong.
        if (next_run_at > now) {
          const due = dueAt(transaction.machine, now);
          if (due === next_run_at) this.#plan(transaction.machine);
          else transaction.set({ next_run_at: due });
          return due !== next_run_at;
        }
        transaction.set({ next_run_at: nextRun(config.schedule, created_at, now) });
        // Runs of one machine never overlap: one that is due while another runs is left out, and said to be.
        const payload = { source: "schedule", reason: `schedule ${config.schedule}` } as const;
        if (!accept(transaction, "start", payload)) transaction.skipRun();
        return true;
      });
    } catch (thrown) {
      this.#tryLater(id, thrown);
    }
  }

  /** Without capacity or store it is retried later, and logged. */
  #tryLater(id: string, thrown: unknown): void {
    this.#parts.log.warn({ error: thrown, machine: id }, "a scheduled machine could not be started");
    this.#timers.set(id, MACHINE_LIMITS.purge_ms, () => void this.#run(id));
  }

  async #startStandby(id: string, reason: string): Promise<void> {
    try {
      await this.#parts.writer.change(id, (transaction) =>
        accept(transaction, "start", { source: "standby", reason: `standby of ${reason}` }),
      );
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      this.#parts.log.warn({ error: thrown, machine: id }, "a standby machine could not be started");
    }
  }

  #foldLater(): void {
    this.#timers.set("fold", MACHINE_LIMITS.fold_counts_ms, () => {
      const { store, log } = this.#parts;
      store.foldCounts().catch((error: unknown) => log.warn({ error }, "machines could not be counted"));
      this.#foldLater();
    });
  }

  #purgeLater(): void {
    this.#timers.set("purge", MACHINE_LIMITS.purge_ms, () => {
      const { store, clock, log, logs_kept_ms = 0 } = this.#parts;
      store.purge(clock.now() - Math.max(MACHINE_LIMITS.destroyed_kept_ms, logs_kept_ms)).catch((error: unknown) => {
        log.warn({ error }, "destroyed machines could not be forgotten");
      });
      this.#purgeLater();
    });
  }
}
