import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { Timers } from "#core/timers.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { RuntimeDriver } from "../runtime/driver.ts";
import type { MachineStore } from "../store.ts";
import { type MachineUpdate, topics } from "./writer.ts";

interface OrphanCleanupParts {
  host_ids: readonly string[];
  store: Pick<MachineStore, "leftovers" | "clearedAway">;
  driver: Pick<RuntimeDriver, "destroy">;
  bus: Bus<MachineUpdate>;
  clock: Clock;
  log: Log;
  /** Whether an operation is running on the machine; then it is cleaned up later. */
  busy(machine_id: string): boolean;
}

/** Removes what machines left on this host when they moved to another. The store lists them. */
export class OrphanCleanup {
  readonly #parts: OrphanCleanupParts;
  readonly #timers: Timers;
  readonly #ends: (() => void)[] = [];
  readonly #closing = new AbortController();
  #clearing: Promise<void> | undefined;

  constructor(parts: OrphanCleanupParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  start(): void {
    const { host_ids, bus } = this.#parts;
    for (const id of host_ids)
      this.#ends.push(
        bus.subscribe(topics.host(id), ({ machine }) => {
          if (machine.host_id !== id) void this.sweep();
        }),
      );
    this.#later();
  }

  close(): void {
    this.#closing.abort();
    this.#timers.close();
    for (const end of this.#ends.splice(0)) end();
  }

  /** Removes what can be removed; the rest is retried. */
  async sweep(): Promise<void> {
    const { log } = this.#parts;
    await this.clear().catch((error: unknown) => {
      if (this.#closing.signal.aborted) return;
      log.warn({ error }, "what a machine left behind could not be cleared away yet");
      this.#timers.set("retry", MACHINE_LIMITS.retry_ms, () => void this.sweep());
    });
  }

  /** Like `sweep`, but fails when something remains. Runs one at a time. */
  async clear(): Promise<void> {
    this.#clearing ??= this.#clear().finally(() => {
      this.#clearing = undefined;
    });
    await this.#clearing;
  }

  #later(): void {
    this.#timers.set("sweep", MACHINE_LIMITS.reconcile_ms, () => {
      void this.sweep();
      this.#later();
    });
  }

  async #clear(): Promise<void> {
    const { host_ids, store, driver, busy } = this.#parts;
    for (const host_id of host_ids) {
      for (const id of await store.leftovers(host_id)) {
        if (busy(id)) throw new Error(`something is still being done to machine ${id}`);
        await driver.destroy(id, this.#closing.signal);
        await store.clearedAway(host_id, id);
      }
    }
  }
}
