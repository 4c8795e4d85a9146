/**
 * Carries out a plan. What was done is remembered as it is done, so that a deploy that fails halfway is undone:
 * machines go back to the config they had, new ones go.
 */
import type { MachineConfig } from "#client/api.ts";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import type { Group } from "../app-file/groups.ts";
import { configFor, cordon, create, destroy, type Place, untilWell, update } from "./machines.ts";
import type { GroupPlan, Plan, Running, Strategy } from "./plan.ts";

interface Done {
  what: string;
  undo(): Promise<unknown>;
}

export class Rollout {
  readonly #place: Place;
  readonly #version: number;
  readonly #done: Done[] = [];
  readonly #started = systemClock.monotonic();

  constructor(place: Place, version: number) {
    this.#place = place;
    this.#version = version;
  }

  /** Fails with what went wrong, after everything was put back as it was. */
  async run(plan: Plan): Promise<void> {
    try {
      for (const group of plan.groups) await STRATEGY[plan.strategy](this, group);
      for (const { group, create: count } of plan.groups) {
        for (let i = 0; i < count; i++) await this.make(group);
      }
    } catch (thrown) {
      await this.#undo(messageOf(thrown));
      throw thrown;
    }
    // From here on there is no way back, and none is needed: all that was asked for runs.
    for (const { remove } of plan.groups) for (const machine of remove) await this.remove(machine);
    for (const machine of plan.gone) await this.remove(machine);
  }

  async change(machine: Running, group: Group, wait: boolean): Promise<void> {
    // Remembered before it is tried: an update whose machine does not get well has happened all the same. It is put
    // back without waiting, because what ran before is known to run.
    this.#done.push({
      what: `the update of ${machine.name}`,
      undo: () => update(this.#place, machine, machine.config, false),
    });
    await update(this.#place, machine, this.#stamped(configFor(group, machine)), wait);
    this.#say(`${machine.name} is updated`);
  }

  async make(group: Group): Promise<string> {
    const config = this.#stamped(group.config);
    const machine = await create(this.#place, { ...group, config });
    this.#done.push({ what: `${machine.name} (${machine.id})`, undo: () => destroy(this.#place, machine.id) });
    await untilWell(this.#place, machine, config);
    this.#say(`${machine.name} (${machine.id}) is made`);
    return machine.id;
  }

  async remove({ id, name }: Pick<Running, "id" | "name">): Promise<void> {
    await destroy(this.#place, id);
    this.#say(`${name} is destroyed`);
  }

  /** Takes a machine out of the traffic; it is put back when the rest fails. */
  async retire(machine: Running): Promise<void> {
    const undo = () =>
      this.#place.context.client.call("POST /v1/apps/:app_name/machines/:machine_id/uncordon", {
        params: { app_name: this.#place.app_name, machine_id: machine.id },
      });
    this.#done.push({ what: `that ${machine.name} gets no traffic`, undo });
    await cordon(this.#place, machine.id);
    this.#say(`${machine.name} gets no more traffic`);
  }

  #stamped(config: MachineConfig): MachineConfig {
    return { ...config, metadata: { ...config.metadata, fly_release_version: String(this.#version) } };
  }

  #say(what: string): void {
    const seconds = ((systemClock.monotonic() - this.#started) / 1000).toFixed(1);
    this.#place.context.say(`${seconds.padStart(6)} s  ${what}`);
  }

  async #undo(why: string): Promise<void> {
    const { say } = this.#place.context;
    say(`It failed: ${why}`);
    if (this.#done.length > 0) say("What was done is undone:");
    for (const { what, undo } of this.#done.toReversed()) {
      const error = await undo().then(
        () => undefined,
        (thrown: unknown) => messageOf(thrown),
      );
      say(error === undefined ? `  undone: ${what}` : `  could not undo ${what}: ${error}`);
    }
  }
}

const STRATEGY: Record<Strategy, (rollout: Rollout, plan: GroupPlan) => Promise<void>> = {
  async rolling(rollout, { group, update: machines, at_once }) {
    for (let at = 0; at < machines.length; at += at_once) {
      await Promise.all(machines.slice(at, at + at_once).map((machine) => rollout.change(machine, group, true)));
    }
  },

  async immediate(rollout, { group, update: machines }) {
    await Promise.all(machines.map((machine) => rollout.change(machine, group, false)));
  },

  /** One more machine has to be well first; it goes again before the others follow. */
  async canary(rollout, plan) {
    if (plan.update.length > 0 && !plan.group.mount) {
      const id = await rollout.make(plan.group);
      await rollout.remove({ id, name: "the canary" });
    }
    await STRATEGY.rolling(rollout, plan);
  },

  /** As many new ones beside the old; the old go when all the new are well. */
  async bluegreen(rollout, { group, update: machines }) {
    for (const _ of machines) await rollout.make(group);
    for (const machine of machines) await rollout.retire(machine);
    for (const machine of machines) await rollout.remove(machine);
  },
};
