import { assert } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import { next, type Trigger } from "./states.ts";
import type { Change, VolumeStore } from "./store.ts";
import type { Operation, OperationPayload, Volume } from "./types.ts";

/** A volume and its operations, read together. */
export interface Work {
  volume: Volume;
  operations: Operation[];
}

/** The change to write; unnamed fields stay. */
export interface Decision extends Omit<Change, "volume"> {
  set?: Partial<Volume>;
}

/**
 * Reads a volume, applies a decision, and writes it if nothing changed meanwhile. Every change of a volume goes through
 * here, except attaching, which is written with the machine.
 */
export class VolumeWriter {
  readonly #store: VolumeStore;
  readonly #clock: Clock;

  constructor(parts: { store: VolumeStore; clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
  }

  /**
   * `decide` may throw to refuse, or return undefined to change nothing; it is called again after a concurrent change.
   */
  async change(id: string, decide: (work: Work) => Decision | undefined): Promise<Volume> {
    for (let race = 0; race < VOLUME_LIMITS.write_races; race++) {
      const work = (await this.#store.findWork(id)) ?? fail("not_found", `volume not found: ${id}`);
      const decision = decide(work);
      if (!decision) return work.volume;
      const { set, ...more } = decision;
      const { revision, updated_at } = work.volume;
      const now = Math.max(this.#clock.now(), updated_at);
      const volume: Volume = { ...work.volume, ...set, revision: revision + 1, updated_at: now };
      if (await this.#store.commit({ ...more, volume })) return volume;
    }
    fail("conflict", `volume ${id} was changed by too many concurrent requests; try again`, { retry_after_s: 1 });
  }
}

/** The next operation of this kind in the volume's queue. */
export function queued(
  { volume, operations }: Work,
  kind: Operation["kind"],
  payload: OperationPayload,
  ids: Ids,
): Operation {
  const { operations_waiting } = VOLUME_LIMITS;
  if (operations.length >= operations_waiting) {
    fail("overloaded", `more than ${operations_waiting} operations wait on volume ${volume.id}`, { retry_after_s: 1 });
  }
  const position = (operations.at(-1)?.position ?? 0) + 1;
  return { id: ids.ulid(), volume_id: volume.id, host_id: volume.host_id, position, kind, payload, tries: 0 };
}

/** The state after a valid trigger; anything else is a bug. */
export function transition({ id, state }: Volume, trigger: Trigger): Volume["state"] {
  const after = next(state, trigger);
  assert(after, `volume ${id} that is ${state} cannot be ${trigger}`);
  return after;
}
