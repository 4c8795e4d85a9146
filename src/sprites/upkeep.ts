import type { AppService } from "#apps/service.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError } from "#core/errors.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import type { MachineState } from "#machines/lifecycle/states.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import type { MachineService } from "#machines/service.ts";
import { SPRITE_LIMITS } from "./limits.ts";
import { actorFor, isRefusal } from "./machine.ts";
import type { SpriteService } from "./service.ts";
import type { SpriteStore } from "./store.ts";
import type { SpriteView } from "./types.ts";

interface UpkeepParts {
  sprites: SpriteService;
  store: SpriteStore;
  apps: AppService;
  machines: MachineService;
  driver: Pick<RuntimeDriver, "inUse">;
  clock: Clock;
  log: Log;
  /** Whether this process is the only one: another one does not know which sprites are used here. */
  sleeps: boolean;
}

/** Finishes what an earlier process had begun, puts idle sprites to sleep, and lets sleeping ones grow cold. */
export class Upkeep {
  readonly #parts: UpkeepParts;
  readonly #ids: Ids;
  readonly #over = new AbortController();
  readonly #began: number;
  #running: Promise<void> | undefined;

  constructor(parts: UpkeepParts) {
    this.#parts = parts;
    this.#ids = randomIds(parts.clock);
    this.#began = parts.clock.now();
  }

  start(): void {
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.sweep().catch((error: unknown) => log.warn({ error }, "a sweep of sprites failed"));
      await clock.sleep(SPRITE_LIMITS.sprite_sweep_ms, signal).catch(() => {});
    }
  }

  async sweep(): Promise<void> {
    const { store, clock, sleeps } = this.#parts;
    // A create or delete that a request is busy with is left to it; what was begun before this process is nobody's.
    const left = clock.now() - SPRITE_LIMITS.sprite_capacity_wait_ms;
    const before = sleeps ? Math.max(left, this.#began - 1) : left;
    for (const sprite of await store.unfinished(before, SPRITE_LIMITS.sprites_per_sweep))
      await this.#quietly(sprite, () => this.#finish(sprite));
    if (!sleeps) return;
    await this.#each("started", (sprite) => this.#suspend(sprite));
    await this.#each("suspended", (sprite) => this.#cool(sprite));
  }

  async #finish(sprite: SpriteView): Promise<void> {
    const { sprites, store, apps } = this.#parts;
    if (sprite.state !== "creating") {
      await store.putDeleting(sprite.id);
      return await sprites.finishDelete(sprite);
    }
    const app = await store.app(sprite.org_id);
    try {
      if (app?.app_id === sprite.app_id) await sprites.makeMachine(sprite, await apps.get(app.app_name));
    } catch (thrown) {
      // Nobody waits for it any more, and it would fail again.
      if (!isRefusal(thrown)) throw thrown;
      await store.putDeleting(sprite.id);
    }
  }

  async #suspend({ id, machine_id }: SpriteView): Promise<void> {
    const { sprites, machines, driver } = this.#parts;
    // Somebody may be in its machine by another way than as in a sprite.
    if (driver.inUse(machine_id)) return sprites.activity.touch(id);
    await sprites.activity.sleep(id, SPRITE_LIMITS.sprite_idle_ms, async () => {
      await machines.suspend(machine_id, actorFor(this.#ids, "policy", "the sprite is idle"));
    });
  }

  async #cool({ id, machine_id, machine_updated_at }: SpriteView): Promise<void> {
    const { sprites, machines, clock } = this.#parts;
    if (clock.now() - (machine_updated_at ?? 0) < SPRITE_LIMITS.sprite_cold_ms) return;
    await sprites.activity.sleep(id, SPRITE_LIMITS.sprite_idle_ms, async () => {
      await machines.stop(machine_id, {}, actorFor(this.#ids, "policy", "the sprite was not used for days"));
    });
  }

  async #each(state: MachineState, work: (sprite: SpriteView) => Promise<void>): Promise<void> {
    const { store } = this.#parts;
    const limit = SPRITE_LIMITS.sprites_per_sweep;
    for (let after = ""; !this.#over.signal.aborted; ) {
      const page = await store.inState(state, { after, limit });
      for (const sprite of page) await this.#quietly(sprite, () => work(sprite));
      const last = page.at(-1);
      if (!last || page.length < limit) return;
      after = last.id;
    }
  }

  /** A sprite that cannot be helped, because of a lease or a lost host, holds up no other. */
  async #quietly({ id }: SpriteView, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) this.#parts.log.warn({ error: thrown, sprite: id }, "a sprite needs help");
    }
  }
}
