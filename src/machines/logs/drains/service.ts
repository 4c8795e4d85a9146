/** Creates, lists, deletes and tests log drains. */
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { Sealer } from "#core/sealer.ts";
import { MACHINE_LIMITS } from "../../limits.ts";
import { type LogDrains, sealName } from "./drains.ts";
import type { DrainSender } from "./sender.ts";
import type { DrainStore } from "./store.ts";
import { addressOf, checkTarget, type DrainInput } from "./target.ts";
import type { Drain, DrainState, DrainTarget } from "./types.ts";

interface DrainServiceParts {
  store: DrainStore;
  sender: DrainSender;
  sealer: Sealer;
  clock: Clock;
  isFullAccess(token_id: string): Promise<boolean>;
  /** Those of this process, which need not wait until they look. */
  drains: Pick<LogDrains, "changed">;
}

export class DrainService {
  readonly #parts: DrainServiceParts;

  constructor(parts: DrainServiceParts) {
    this.#parts = parts;
  }

  async list(org_id: string): Promise<(Drain & { states: DrainState[] })[]> {
    const { store } = this.#parts;
    const [drains, states] = await Promise.all([store.drains(org_id), store.states(org_id)]);
    const by_drain = Map.groupBy(states, ({ drain_id }) => drain_id);
    return drains.map((drain) => ({ ...drain, states: by_drain.get(drain.id) ?? [] }));
  }

  async create(
    input: DrainInput & { org_id: string; app_id: string | null; since?: number; token_id: string },
    ids: Ids,
  ): Promise<Drain> {
    const { store, sealer, clock, drains } = this.#parts;
    const { org_id, app_id, kind, token_id } = input;
    const target = checkTarget(input);
    const id = ids.short();
    const now = clock.now();
    const drain: Drain = {
      id,
      org_id,
      app_id,
      kind,
      target: sealer.seal(sealName(id), JSON.stringify(target)),
      address: addressOf(target.url),
      since: input.since ?? now,
      created_at: now,
      token_id,
    };
    const { drains_per_org } = MACHINE_LIMITS;
    if (!(await store.insert(drain, drains_per_org)))
      fail("limit_reached", `an organization has at most ${drains_per_org} log drains (limit drains_per_org)`);
    drains.changed();
    return drain;
  }

  async delete(org_id: string, id: string): Promise<void> {
    if (!(await this.#parts.store.delete(org_id, id))) notFound(id);
    this.#parts.drains.changed();
  }

  /** Sends one line at once; undefined when the receiver took it, otherwise why not. */
  async test(org_id: string, id: string): Promise<string | undefined> {
    const { store, sender, sealer, clock, isFullAccess } = this.#parts;
    const drain = (await store.drains(org_id)).find((one) => one.id === id) ?? notFound(id);
    const target = JSON.parse(sealer.open(sealName(id), drain.target).toString()) as DrainTarget;
    const timestamp = clock.now();
    const line = {
      timestamp,
      stamp: `${new Date(timestamp).toISOString().slice(0, 23)}000000Z`,
      stream: "stdout" as const,
      message: `test of log drain ${id}`,
      machine: { id: "test", name: "test", app_name: "hangar", region: "none" },
    };
    const trusted = await isFullAccess(drain.token_id);
    const outcome = await sender.send({ kind: drain.kind, target, trusted }, [line]);
    return outcome.taken && outcome.refused === 0 ? undefined : (outcome.reason ?? "it was refused");
  }
}

const notFound = (id: string): never => fail("not_found", `there is no log drain ${JSON.stringify(id)}`);
