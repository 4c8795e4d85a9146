import type { AppService } from "#apps/service.ts";
import type { App } from "#apps/types.ts";
import { assert } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import { SPRITE_LABELS_KEY } from "#core/sprite-labels.ts";
import type { Waits } from "#machines/events/wait.ts";
import type { Metadata } from "#machines/lifecycle/metadata.ts";
import type { Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import type { MachineService } from "#machines/service.ts";
import { Activity } from "./activity.ts";
import { CreationRate } from "./creation-rate.ts";
import { SPRITE_LIMITS } from "./limits.ts";
import { actorFor, awake, idsOf, isRefusal, labelsText, machineConfig, machineIdOf } from "./machine.ts";
import type { SpriteStore } from "./store.ts";
import type { Sprite, SpriteSettings, SpriteView } from "./types.ts";

export interface SpriteParts {
  store: SpriteStore;
  apps: AppService;
  machines: MachineService;
  metadata: Metadata;
  waits: Waits;
  driver: RuntimeDriver;
  clock: Clock;
  log: Log;
}

export interface Org {
  id: string;
  slug: string;
}

export interface CreateSpriteInput {
  name: string;
  settings: SpriteSettings;
  labels: readonly string[];
  url_auth: Sprite["url_auth"];
  private_access: Sprite["private_access"];
  wait_for_capacity: boolean;
}

export type UpdateSpriteInput = Partial<Pick<CreateSpriteInput, "labels" | "url_auth" | "private_access">>;

/**
 * The rules about sprites. A sprite is a row that says what is wanted, written before its machine is made and removed
 * after its machine is gone; what a crash leaves in between is finished by `Upkeep`.
 */
export class SpriteService {
  readonly activity: Activity;
  readonly #parts: SpriteParts;
  readonly #ids: Ids;
  readonly #rate: CreationRate;

  constructor(parts: SpriteParts) {
    this.#parts = parts;
    this.#ids = randomIds(parts.clock);
    this.activity = new Activity(parts.clock);
    this.#rate = new CreationRate(parts.clock);
  }

  async get(org_id: string, name: string): Promise<SpriteView> {
    const sprite = await this.#parts.store.find(org_id, name);
    if (!sprite || sprite.state === "deleting" || sprite.machine_state === "destroyed")
      fail("not_found", `sprite not found: ${name.slice(0, NAME_SHOWN)}`);
    return sprite;
  }

  async create(org: Org, input: CreateSpriteInput, ids: Ids, signal: AbortSignal): Promise<SpriteView> {
    const { store, clock } = this.#parts;
    const { name, settings, labels, url_auth, private_access } = input;
    const now = clock.now();
    const app = await this.#app(org);
    const made = { id: `sprite-${ids.ulid().toLowerCase()}`, created_at: now };
    const sprite: Sprite = {
      ...made,
      org_id: org.id,
      app_id: app.id,
      name,
      machine_id: machineIdOf(made),
      state: "creating",
      settings,
      first_labels: labels,
      url_auth,
      private_access,
      updated_at: now,
    };
    if (!(await store.find(org.id, name))) this.#rate.acquire(org.id);
    const result = await store.insert(sprite, SPRITE_LIMITS.sprites_per_org);
    if (result === "name_taken") fail("sprite_exists", `a sprite named ${name} already exists`);
    if (result === "no_app") fail("conflict", "the app of the organization's sprites was deleted meanwhile; try again");
    if (result === "limit") await this.#refuseFull(org.id);
    const stored = result === "exists" ? await this.get(org.id, name) : sprite;
    try {
      await this.makeMachine(stored, app, input.wait_for_capacity ? signal : undefined);
    } catch (thrown) {
      if (isRefusal(thrown)) await this.#drop(sprite);
      throw thrown;
    }
    return await this.get(org.id, name);
  }

  /** Makes the machine of a sprite that is being created, however far an earlier attempt came. */
  async makeMachine(sprite: Sprite, app: App, patient?: AbortSignal): Promise<void> {
    const { machines, store, clock } = this.#parts;
    const owner = { org_id: sprite.org_id, app_id: app.id, app_name: app.name, network: app.network };
    const { region } = sprite.settings;
    const wanted = { name: sprite.name, config: machineConfig(sprite), ...(region === null ? {} : { region }) };
    const until = clock.monotonic() + SPRITE_LIMITS.sprite_capacity_wait_ms;
    for (;;) {
      try {
        const { id } = await machines.create(owner, wanted, { name: "sprites", ids: idsOf(sprite) });
        assert(id === sprite.machine_id, "the first id of a sprite is its machine's");
        await store.putReady(sprite.id);
        return;
      } catch (thrown) {
        const full = thrown instanceof ApiError && thrown.code === "insufficient_capacity";
        if (!full || !patient || clock.monotonic() > until) throw thrown;
        await clock.sleep(SPRITE_LIMITS.sprite_capacity_look_ms, patient);
      }
    }
  }

  async update(org_id: string, name: string, input: UpdateSpriteInput): Promise<SpriteView> {
    const { store, metadata, clock } = this.#parts;
    const { id, machine_id } = await this.get(org_id, name);
    const { labels, ...row } = input;
    if (labels) {
      const pairs = { [SPRITE_LABELS_KEY]: labelsText(labels) };
      await metadata.change(machine_id, { pairs, replace: false }, { name: "sprites", ids: this.#ids });
    }
    if (!(await store.change(id, row, clock.now()))) fail("not_found", `sprite not found: ${name}`);
    return await this.get(org_id, name);
  }

  async delete(org_id: string, name: string): Promise<void> {
    const sprite = await this.#parts.store.find(org_id, name);
    if (!sprite) fail("not_found", `sprite not found: ${name.slice(0, NAME_SHOWN)}`);
    await this.#drop(sprite);
  }

  /** Ends the machine, then forgets the sprite. A sprite whose machine takes long is forgotten by `Upkeep`. */
  async #drop(sprite: Sprite): Promise<void> {
    await this.#parts.store.putDeleting(sprite.id);
    await this.finishDelete(sprite);
  }

  async finishDelete({ id, machine_id }: Sprite): Promise<void> {
    const { machines, waits, store } = this.#parts;
    const actor = actorFor(this.#ids, "policy", "the sprite is deleted");
    try {
      await machines.destroy(machine_id, { kill: true }, actor);
      const timeout_s = SPRITE_LIMITS.sprite_delete_ms / 1000;
      await waits.wait(machine_id, { states: ["destroyed"], timeout_s }, NEVER);
    } catch (thrown) {
      // It was never made, or is gone already.
      if (!(thrown instanceof ApiError) || thrown.code !== "not_found") throw thrown;
    }
    await store.remove(id);
    this.activity.forget(id);
  }

  /** Stops and starts the machine; the disk stays. */
  async restart(org_id: string, name: string): Promise<SpriteView> {
    const { machines } = this.#parts;
    const sprite = await this.get(org_id, name);
    await this.activity.during(sprite.id, async () => {
      const { ref } = await this.awake(sprite);
      await machines.restart(sprite.machine_id, {}, actorFor(this.#ids, "proxy", "the sprite is restarted"));
      await this.#parts.waits.wait(sprite.machine_id, { states: ["settled"], timeout_s: WAKE_S }, NEVER);
      assert(ref.id === sprite.machine_id, "the machine stays the same");
    });
    return sprite;
  }

  /** Runs a trivial command in the sprite, waking it. */
  async check(org_id: string, name: string): Promise<{ sprite: SpriteView; problem?: string; elapsed_ms: number }> {
    const { clock, driver } = this.#parts;
    const sprite = await this.get(org_id, name);
    const began = clock.monotonic();
    const problem = await this.use(sprite, async (ref) => {
      const { exit_code, stderr } = await driver.exec(ref, { command: ["true"], timeout_ms: CHECK_MS }, NEVER);
      return exit_code === 0 ? undefined : stderr.trim() || `the program true ended with ${exit_code}`;
    }).catch((thrown: unknown) => (isRefusal(thrown) ? thrown.message : Promise.reject(thrown)));
    return { sprite, elapsed_ms: clock.monotonic() - began, ...(problem === undefined ? {} : { problem }) };
  }

  /** Wakes the sprite, and keeps it awake while `work` lasts. */
  async use<T>(sprite: SpriteView, work: (ref: Ref) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return await this.activity.during(sprite.id, async () => await work((await this.awake(sprite, signal)).ref));
  }

  async awake(sprite: SpriteView, signal?: AbortSignal) {
    return await awake({ ...this.#parts, ids: this.#ids }, sprite, signal);
  }

  async #refuseFull(org_id: string): Promise<never> {
    const limit = SPRITE_LIMITS.sprites_per_org;
    const current_count = await this.#parts.store.count(org_id);
    fail("concurrent_sprite_limit_exceeded", `the organization has ${limit} sprites (limit sprites_per_org)`, {
      facts: { limit, current_count, upgrade_available: false },
      hint: "delete sprites that are no longer needed",
    });
  }

  /** The app of the organization's sprites, made with the first of them. */
  async #app(org: Org): Promise<App> {
    const { store, apps } = this.#parts;
    const known = await store.app(org.id);
    if (known) return await apps.get(known.app_name);
    const app = await this.#makeApp(org);
    await store.putApp(org.id, app.id);
    // Two first sprites at the same time make two apps, of which one stays empty and goes.
    const kept = await store.app(org.id);
    if (!kept || kept.app_id === app.id) return app;
    await apps.delete(app.name, false);
    return await apps.get(kept.app_name);
  }

  /** Names of apps are shared by all organizations, so the plain one may be taken. */
  async #makeApp({ id, slug }: Org): Promise<App> {
    const { apps } = this.#parts;
    const base = `sprites-${slug}`.slice(0, APP_NAME_CHARS);
    for (const name of [base, `${base.slice(0, APP_NAME_CHARS - 9)}-${this.#ids.hex(8)}`]) {
      try {
        return await apps.create(id, { name, network: "sprites" }, this.#ids);
      } catch (thrown) {
        if (!(thrown instanceof ApiError) || thrown.code !== "name_taken") throw thrown;
      }
    }
    fail("name_taken", `the app ${base} belongs to another organization`);
  }
}

const NAME_SHOWN = 100;
const APP_NAME_CHARS = 60;
const CHECK_MS = 10_000;
const WAKE_S = SPRITE_LIMITS.sprite_wake_ms / 1000;
const NEVER = new AbortController().signal;
