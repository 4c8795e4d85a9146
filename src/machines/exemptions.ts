import type { Log } from "#core/log.ts";
import type { Fence } from "#hosts/fence.ts";
import type { Tenure } from "#hosts/types.ts";
import { MACHINE_LIMITS } from "./limits.ts";
import type { MachineStore } from "./store.ts";

/** Metadata key that decides what happens when the machine's host is lost; `move` starts it elsewhere. */
export const ON_HOST_LOSS = { key: "hangar_on_host_loss", value: "move" } as const;

interface ExemptionParts {
  host_ids: readonly string[];
  fence: Fence;
  store: Pick<MachineStore, "exempt" | "misfenced" | "addExempt" | "removeExempt">;
  log: Log;
}

/**
 * Tracks which running machines of our hosts the fence does not freeze: those that no other host may start. A machine
 * may become exempt or stop being so at any time, so store and fence are updated in a safe order: an exemption is
 * stored before the fence applies it, and the fence withdraws it before it is deleted, both only while the lease is
 * held. A host that is rescuing machines skips exempt ones.
 */
export class Exemptions {
  readonly #parts: ExemptionParts;
  /** Whether the fence matches the store. */
  #agreed = false;
  #turn: Promise<void> = Promise.resolve();
  readonly #waiting = new Set<string>();

  constructor(parts: ExemptionParts) {
    this.#parts = parts;
  }

  /** Updates store and fence to the machines' current config. Failures are retried with the next heartbeat. */
  async look(tenure: Tenure): Promise<void> {
    if (this.#waiting.has(tenure.id)) return await this.#turn;
    this.#waiting.add(tenure.id);
    const turn = this.#turn
      .then(() => {
        this.#waiting.delete(tenure.id);
        return this.#look(tenure);
      })
      .catch((error: unknown) => {
        this.#agreed = false;
        this.#parts.log.warn({ error, host: tenure.id }, "which machines run on without a lease could not be settled");
      });
    this.#turn = turn;
    await turn;
  }

  async #look(tenure: Tenure): Promise<void> {
    const { store, fence } = this.#parts;
    if (!this.#agreed) await this.#agree();
    const wrong = await store.misfenced(tenure.id);
    const leaving = wrong.filter(({ may_leave }) => may_leave).map(({ id }) => id);
    for (const id of leaving) fence.include(id);
    if (leaving.length > 0) await store.removeExempt(tenure, leaving);
    const staying = wrong.filter(({ may_leave }) => !may_leave).slice(0, MACHINE_LIMITS.exempted_at_once);
    if (staying.length === 0) return;
    for (const id of await store.addExempt(tenure, staying)) fence.exempt(id);
  }

  /** Restores agreement after a crash or a write without a response, which may have left only one half done. */
  async #agree(): Promise<void> {
    const { host_ids, store, fence } = this.#parts;
    const written = new Set((await Promise.all(host_ids.map((id) => store.exempt(id)))).flat());
    for (const id of fence.exempted()) if (!written.has(id)) fence.include(id);
    for (const id of written) fence.exempt(id);
    this.#agreed = true;
  }
}
