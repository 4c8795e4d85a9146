import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import { checkSlug } from "#core/names.ts";
import { count } from "#core/words.ts";
import type { AppPage, AppRange, AppStore } from "./store.ts";
import type { App } from "./types.ts";

/** Counts of an app's resources. */
export interface Occupancy {
  machines: number;
  volumes: number;
}

/** Counts an app's resources of one kind. Implemented by the module that owns them. */
export interface Counted {
  count(app_id: string): Promise<number>;
  /** Counts by app id, for apps that have any. */
  counts(range: AppRange): Promise<ReadonlyMap<string, number>>;
}

interface AppParts {
  store: AppStore;
  clock: Clock;
  machines: Counted;
  volumes: Counted;
  /** Destroys the app's resources; resolves when they are destroyed. */
  clear(app_id: string): Promise<void>;
}

/** The rules about apps. */
export class AppService {
  readonly #parts: AppParts;
  readonly #onDelete: ((app_id: string) => void)[] = [];

  constructor(parts: AppParts) {
    this.#parts = parts;
  }

  /** Calls the listener after an app was deleted by this process. */
  onDelete(listener: (app_id: string) => void): void {
    this.#onDelete.push(listener);
  }

  async list(org_id: string, page?: AppPage): Promise<App[]> {
    return await this.#parts.store.apps(org_id, page);
  }

  async count(org_id: string): Promise<number> {
    return await this.#parts.store.countApps(org_id);
  }

  async get(name: string): Promise<App> {
    return (await this.#parts.store.findApp(name)) ?? fail("not_found", `Could not find App ${JSON.stringify(name)}`);
  }

  /** The app, if it belongs to the organization. */
  async getIn(org_id: string, name: string): Promise<App> {
    const app = await this.#parts.store.findApp(name);
    return app?.org_id === org_id ? app : fail("not_found", `Could not find App ${JSON.stringify(name)}`);
  }

  async occupancy(app_id: string): Promise<Occupancy> {
    const parts = this.#parts;
    const [machines, volumes] = await Promise.all([parts.machines.count(app_id), parts.volumes.count(app_id)]);
    return { machines, volumes };
  }

  /** For many apps in one query: there may be thousands. */
  async occupancies(range: AppRange): Promise<(app_id: string) => Occupancy> {
    const parts = this.#parts;
    const [machines, volumes] = await Promise.all([parts.machines.counts(range), parts.volumes.counts(range)]);
    return (app_id) => ({ machines: machines.get(app_id) ?? 0, volumes: volumes.get(app_id) ?? 0 });
  }

  async create(org_id: string, wanted: { name: string; network: string }, ids: Ids): Promise<App> {
    checkSlug(wanted.name, "body.app_name");
    checkSlug(wanted.network, "body.network");
    const app: App = {
      id: ids.short(),
      name: wanted.name,
      org_id,
      numeric_id: ids.numeric(),
      network: wanted.network,
      secrets_version: 0,
      created_at: this.#parts.clock.now(),
    };
    const result = await this.#parts.store.insertApp(app, LIMITS.apps_per_org);
    if (result === "name_taken") fail("name_taken", `Validation failed: Name has already been taken: ${wanted.name}`);
    if (result === "limit")
      fail("limit_reached", `an organization has at most ${LIMITS.apps_per_org} apps (limit apps_per_org)`);
    if (result === "no_org") fail("not_found", "the organization was deleted in the meantime");
    return await this.get(wanted.name);
  }

  async delete(name: string, force: boolean): Promise<void> {
    const app = await this.get(name);
    const { machines, volumes } = await this.occupancy(app.id);
    if (machines + volumes > 0 && !force) {
      fail("app_not_empty", `app ${name} still has ${count(machines, "machine")} and ${count(volumes, "volume")}`, {
        hint: `hangar apps delete ${name} --force`,
      });
    }
    if (machines + volumes > 0) await this.#parts.clear(app.id);
    await this.#parts.store.deleteApp(app.id);
    for (const listener of this.#onDelete) listener(app.id);
  }
}
