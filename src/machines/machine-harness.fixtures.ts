/**
 * The whole machines module for tests: the real service, executor and store over SQLite in memory, the sim driver,
 * a virtual clock. It can be killed at any external call and started again over what is left: the database and the
 * world, as after kill -9.
 */
import { DatabaseSync } from "node:sqlite";
import { anApp } from "#apps/fixtures.ts";
import { anOrg } from "#auth/fixtures.ts";
import { ALL_EGRESS } from "#core/egress-policy.ts";
import { type VirtualClock, virtualClock } from "#core/fixtures.ts";
import { type Ids, repeatableIds } from "#core/ids.ts";
import { silentLog } from "#core/log.ts";
import { simDriver } from "#drivers/runtime/sim/driver.ts";
import { SimWorld } from "#drivers/runtime/sim/world.ts";
import { declaredHosts, HostService } from "#hosts/service.ts";
import type { Placing } from "#hosts/types.ts";
import type { Database } from "#stores/database.ts";
import { migrate } from "#stores/migrate.ts";
import { sqlAppStore } from "#stores/sql/apps.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlHostStore } from "#stores/sql/hosts.ts";
import { sqlMachineStore } from "#stores/sql/machines.ts";
import { sqlNetworkStore } from "#stores/sql/private-networks.ts";
import { sqlVolumeStore } from "#stores/sql/volumes.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import type { Volume } from "#volumes/types.ts";
import type { Actor, Owner, VolumeFinder } from "./inputs.ts";
import { MachineModule } from "./module.ts";
import { PrivateNetworks } from "./private-networks.ts";
import type { RuntimeDriver } from "./runtime/driver.ts";
import type { MachineStore } from "./store.ts";
import type { Machine, MachineConfig } from "./types.ts";

export const OWNER: Owner = { org_id: "o1", app_id: "a1", app_name: "web", network: "default" };

/** Called before and after each external call; throws `Killed` to end the process there. */
export type ExternalStore = (call: string, when: "before" | "after") => Promise<void> | void;

export interface MachineHarnessOptions {
  hosts?: readonly Placing[];
  outside?: ExternalStore;
  fault?: (call: keyof RuntimeDriver, id: string, signal?: AbortSignal) => Promise<void>;
  /** Changes made by a deliberately wrong variant. */
  wrapStore?: (store: MachineStore) => MachineStore;
  wrapDriver?: (driver: RuntimeDriver) => RuntimeDriver;
  clock?: VirtualClock;
  volumes?: VolumeFinder;
}

/** The process ended here: this call never returns. */
export class Killed extends Error {
  override readonly name = "Killed";
}

export class MachineHarness {
  readonly clock: VirtualClock;
  readonly world = new SimWorld();
  readonly ids: Ids;
  module!: MachineModule;
  hosts!: HostService;
  store!: MachineStore;
  /** Belongs to the current process. */
  #dead = { value: false };
  readonly #database: Database;
  readonly #options: MachineHarnessOptions;

  private constructor(database: Database, options: MachineHarnessOptions) {
    this.#database = database;
    this.#options = options;
    this.clock = options.clock ?? virtualClock();
    this.ids = repeatableIds(Buffer.from("rig"), this.clock.now());
  }

  static async open(options: MachineHarnessOptions = {}): Promise<MachineHarness> {
    const db = new DatabaseSync(":memory:", { enableForeignKeyConstraints: true });
    const database = inlineSqlite(db);
    await migrate(database);
    await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
    await sqlAppStore(database).insertApp(anApp({ id: "a1", name: "web", org_id: "o1" }), 10);
    const harness = new MachineHarness(database, options);
    await harness.boot();
    return harness;
  }

  get killed(): boolean {
    return this.#dead.value;
  }

  /** Starts a new process on the existing state. */
  async boot(): Promise<void> {
    // What is left of the previous process gets no more updates.
    if (this.killed) void this.module.close();
    const dead = { value: false };
    this.#dead = dead;
    const outside = this.#options.outside ?? (() => {});
    const database = mortal(this.#database, ["read", "write"], dead, outside);
    const store = sqlMachineStore(database);
    this.store = this.#options.wrapStore?.(store) ?? store;
    this.hosts = new HostService({
      store: sqlHostStore(this.#database),
      own: declaredHosts(this.#options.hosts ?? []),
    });
    await this.hosts.start();
    const { fault } = this.#options;
    const sim = simDriver({ clock: this.clock, world: this.world, ...(fault ? { fault } : {}) });
    const calls = ["start", "stop", "suspend", "resume", "destroy"] as const;
    const driver = mortal(this.#options.wrapDriver?.(sim) ?? sim, calls, dead, outside);
    const hosts = this.hosts;
    const networks = new PrivateNetworks(sqlNetworkStore(this.#database), Buffer.from("rig"));
    const launched = { secrets: async () => ({}), egress: async () => ALL_EGRESS };
    const parts = { store: this.store, hosts, driver, networks, clock: this.clock, log: silentLog, ...launched };
    const { volumes } = this.#options;
    this.module = new MachineModule({ ...parts, ids: this.ids, ...(volumes ? { volumes } : {}) });
    await this.module.start();
  }

  /** Adds a mountable volume to the app. */
  async addVolume(volume: Volume): Promise<void> {
    await sqlVolumeStore(this.#database).insert({ volume }, { limit: 100, unique_zone: false });
  }

  /** Kills the process between two instructions; driver and database stay. */
  kill(): void {
    this.#dead.value = true;
  }

  actor(change: Partial<Actor> = {}): Actor {
    return { name: "tester", ids: this.ids, ...change };
  }

  async create(
    config: Partial<MachineConfig> = {},
    input: { skip_launch?: boolean; name?: string; lease_ttl?: number } = {},
  ): Promise<Machine> {
    return await this.module.machines.create(OWNER, { config: { image: "web:1", ...config }, ...input }, this.actor());
  }

  /** Reads the stored machine, whatever the process is doing. */
  async find(id: string): Promise<Machine> {
    const machine = await sqlMachineStore(this.#database).find(id);
    if (!machine) throw new Error(`machine ${id} is not there`);
    return machine;
  }

  /** Runs everything that is scheduled, including back-off delays. */
  async settle(limit_ms = 120_000): Promise<void> {
    for (let waited = 0; waited <= limit_ms; waited += 1000) {
      await turns(4);
      while (!this.module.executor.idle && !this.killed) {
        await turns(1);
        if (this.module.executor.idle || this.clock.sleepers > 1) break;
      }
      const busy = await this.#database.read<{ id: string }>("SELECT id FROM machine_operations LIMIT 1");
      if ((busy.length === 0 && this.module.executor.idle) || this.killed) return;
      await this.clock.advance(1000);
    }
    throw new Error(`something is still going on after ${limit_ms / 1000} s`);
  }

  async close(): Promise<void> {
    await this.module.close();
    await this.#database.close();
  }
}

export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

const never = (): Promise<never> => new Promise(() => {});

/** Wraps `target` so that each call first checks whether the process was killed. */
function mortal<T extends object>(
  target: T,
  calls: readonly (keyof T)[],
  dead: { value: boolean },
  outside: ExternalStore,
): T {
  const names = new Set<PropertyKey>(calls as readonly PropertyKey[]);
  const pass = async (name: string, call: () => Promise<unknown>): Promise<unknown> => {
    await outside(name, "before");
    if (dead.value) return await never();
    const result = await call();
    await outside(name, "after");
    return result;
  };
  const guarded = async (name: string, call: () => Promise<unknown>): Promise<unknown> => {
    if (dead.value) return await never();
    try {
      const result = await pass(name, call);
      return dead.value ? await never() : result;
    } catch (thrown) {
      if (!(thrown instanceof Killed)) throw thrown;
      dead.value = true;
      return await never();
    }
  };
  return new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name, object);
      if (typeof value !== "function") return value;
      const call = value as (...args: unknown[]) => Promise<unknown>;
      if (!names.has(name)) return call.bind(object);
      return (...args: unknown[]) => guarded(String(name), () => call.apply(object, args));
    },
  });
}
