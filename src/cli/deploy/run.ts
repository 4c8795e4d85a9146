/**
 * Executes a plan. Each step is recorded, so that a failed deploy is rolled back: updated machines get their former
 * config, new ones are destroyed.
 */
import type { Machine, MachineConfig } from "#client/api.ts";
import type { Group } from "../app-file/groups.ts";
import { CREATED_KEY, mark, retire, unmark, unretire } from "./leftovers.ts";
import { configFor, create, destroy, isScheduled, runOnce, update } from "./machines.ts";
import type { Place } from "./place.ts";
import type { GroupPlan, Plan, Running, Strategy } from "./plan.ts";
import { untilHealthy } from "./wait.ts";

export class Rollout {
  readonly #place: Place;
  readonly #version: number;
  /** Replaced machines, removed at the end. */
  readonly #retired: Running[] = [];
  /** Machines to update or create, and those that are done. */
  #steps = 0;
  #done = 0;

  constructor(place: Place, version: number) {
    this.#place = place;
    this.#version = version;
  }

  async run(plan: Plan): Promise<void> {
    this.#steps = plan.groups.reduce((sum, planned) => sum + planned.update.length + planned.create, 0);
    for (const planned of plan.groups) {
      const { group, create: count } = planned;
      if (group.once && !plan.keep) await this.#toItsEnd(group);
      await STRATEGY[plan.strategy](this, planned);
      await this.make(group, count);
      for (const machine of planned.remove) await this.#mark(machine);
    }
  }

  /** Removes replaced machines once everything new runs; there is no rollback after this. */
  async finish(plan: Plan): Promise<void> {
    for (const machine of this.#retired) await this.remove(machine);
    for (const { remove } of plan.groups) for (const machine of remove) await this.remove(machine);
    for (const machine of plan.gone) await this.remove(machine);
  }

  /** Updates machines in parallel. The first failure stops waiting for the others, so that all can be rolled back. */
  async change(machines: readonly Running[], group: Group, wait: boolean): Promise<void> {
    await sideBySide(machines, (machine, failing) => this.#change(machine, group, wait ? failing : undefined));
  }

  async #change(machine: Running, group: Group, wait: AbortSignal | undefined): Promise<void> {
    const { undo, status, lease } = this.#place;
    lease.signal.throwIfAborted();
    // Registered before the attempt: an update may have happened even if the machine is not healthy. The rollback does
    // not wait.
    undo.add(`the update of ${machine.name} (${machine.id})`, () => update(this.#place, machine, machine.config));
    await update(this.#place, machine, this.#stamped(configFor(group, machine)), wait);
    status.log(`updated ${machine.name} (${machine.id})${wait ? ", healthy" : ""}`);
    this.#report(`updated ${machine.name}`);
  }

  /** A canary is one more than there are to be. */
  #report(what: string): void {
    this.#done = Math.min(this.#done + 1, this.#steps);
    this.#place.lease.report(`${this.#done} of ${this.#steps} machines: ${what}`);
  }

  /** Creates machines one by one, since each takes a free volume, and waits for them in parallel. */
  async make(group: Group, count: number): Promise<Machine[]> {
    const { undo, status, lease } = this.#place;
    const made: Machine[] = [];
    for (let i = 0; i < count; i++) {
      lease.signal.throwIfAborted();
      const config = this.#stamped(group.config, { [CREATED_KEY]: String(this.#version) });
      const machine = await create(this.#place, { ...group, config });
      undo.add(`machine ${machine.name} (${machine.id})`, () => destroy(this.#place, machine.id));
      made.push(machine);
    }
    if (isScheduled(group.config)) {
      for (const { name, id } of made) status.log(`created ${name} (${id}), runs ${group.config.schedule}`);
      return made;
    }
    await sideBySide(made, async (machine, failing) => {
      await untilHealthy(this.#place, machine, failing);
      status.log(`created ${machine.name} (${machine.id}), healthy`);
      this.#report(`created ${machine.name}`);
    });
    return made;
  }

  async #toItsEnd(group: Group): Promise<void> {
    this.#place.status.say(`Running ${group.name} to its end`);
    await runOnce(
      this.#place,
      { ...group, config: this.#stamped(group.config) },
      { what: `process group ${group.name}` },
    );
    this.#place.status.log(`${group.name} has ended well`);
  }

  async remove({ id, name }: Pick<Running, "id" | "name">): Promise<void> {
    await destroy(this.#place, id);
    this.#place.status.log(`destroyed ${name}`);
  }

  /** Removes a machine from traffic, to be destroyed at the end; restored on failure. */
  async retire(machine: Running): Promise<void> {
    const { undo, status, lease } = this.#place;
    lease.signal.throwIfAborted();
    undo.add(`the cordon of ${machine.name} (${machine.id})`, () => unretire(this.#place, machine.id));
    await retire(this.#place, machine.id, this.#version);
    this.#retired.push(machine);
    status.log(`cordoned ${machine.name}: it gets no more traffic`);
  }

  async #mark({ id, name }: Running): Promise<void> {
    this.#place.undo.add(`the end of ${name} (${id})`, () => unmark(this.#place, id));
    await mark(this.#place, id, this.#version);
  }

  #stamped(config: MachineConfig, more: Record<string, string> = {}): MachineConfig {
    const metadata = { ...config.metadata, fly_release_version: String(this.#version), ...more };
    return { ...config, metadata };
  }
}

/** Runs `work` for all in parallel. The first error is thrown after the others have ended; they get the signal. */
async function sideBySide<T>(all: readonly T[], work: (one: T, failing: AbortSignal) => Promise<void>): Promise<void> {
  const failing = new AbortController();
  await Promise.all(all.map((one) => work(one, failing.signal).catch((thrown: unknown) => failing.abort(thrown))));
  failing.signal.throwIfAborted();
}

const STRATEGY: Record<Strategy, (rollout: Rollout, plan: GroupPlan) => Promise<void>> = {
  async rolling(rollout, { group, update: machines, at_once }) {
    for (let at = 0; at < machines.length; at += at_once) {
      await rollout.change(machines.slice(at, at + at_once), group, true);
    }
  },

  async immediate(rollout, { group, update: machines }) {
    await rollout.change(machines, group, false);
  },

  /** One extra machine must be healthy first; it is removed before the others are updated. */
  async canary(rollout, plan) {
    if (plan.update.length > 0 && !plan.group.mount) {
      for (const { id } of await rollout.make(plan.group, 1)) await rollout.remove({ id, name: "the canary" });
    }
    await STRATEGY.rolling(rollout, plan);
  },

  /** Creates as many new machines beside the old ones, which are removed when all groups are healthy. */
  async bluegreen(rollout, { group, update: machines }) {
    await rollout.make(group, machines.length);
    for (const machine of machines) await rollout.retire(machine);
  },
};
