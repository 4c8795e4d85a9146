/**
 * The process ends at every single call to the store, the disk or the object store, before it or after it, in
 * every operation on a volume. A new process over what is there makes it right.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { anApp } from "#apps/fixtures.ts";
import { anOrg } from "#auth/fixtures.ts";
import { systemClock } from "#core/clock.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import { silentLog } from "#core/log.ts";
import type { ObjectStore } from "#core/objects.ts";
import { Sealer } from "#core/sealer.ts";
import { SimDisk } from "#drivers/disk/sim.ts";
import { declaredHosts, HostService } from "#hosts/service.ts";
import type { Database } from "#stores/database.ts";
import { migrate } from "#stores/migrate.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { sqlAppStore } from "#stores/sql/apps.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlHostStore } from "#stores/sql/hosts.ts";
import { sqlVolumeStore } from "#stores/sql/volumes.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { VolumeKeys } from "#volumes/keys.ts";
import { VolumeModule } from "#volumes/module.ts";
import type { VolumeStore } from "#volumes/store.ts";
import { random, runs, seed, tempDir } from "../support.ts";
import { OWNER } from "../volumes.ts";

const CONTENT = Buffer.alloc(8192, "what was written stays");
const SECTOR = 100;
const INERT_MS = 500;
const sealer = new Sealer(Buffer.alloc(32, 3));

/** Ends the process at the n-th call: nothing it asks for after that is answered. */
class Fuse {
  calls = 0;
  /** Resolves when the process is over. */
  readonly ended: Promise<void>;
  readonly #end: () => void;
  readonly #running = new Set<Promise<unknown>>();
  readonly at: number;
  readonly after: boolean;

  constructor(at: number, after: boolean) {
    this.at = at;
    this.after = after;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#end = resolve;
  }

  get burnt(): boolean {
    return this.calls > this.at;
  }

  protect<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (object, name) => {
        const value: unknown = Reflect.get(object, name);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => this.#call(() => Reflect.apply(value, object, args) as unknown);
      },
    });
  }

  /**
   * Resolves when what was called before the end is over: the next process must not meet it. A call that waits for
   * something of the process that ended, a stream for example, never is, and does nothing more.
   */
  async still(): Promise<void> {
    await Promise.race([Promise.allSettled(this.#running), sleep(INERT_MS)]);
  }

  #call(work: () => unknown): unknown {
    const mine = this.calls++;
    if (mine < this.at) return this.#follow(work());
    this.#end();
    // The last thing that happens, if it happens, is this call; its answer reaches nobody.
    if (mine === this.at && this.after) this.#follow(work());
    return new Promise(() => {});
  }

  #follow(answer: unknown): unknown {
    if (!(answer instanceof Promise)) return answer;
    const over = answer.catch(() => {}).finally(() => this.#running.delete(over));
    this.#running.add(over);
    return answer;
  }
}

interface World {
  database: Database;
  dir: string;
  ids: Ids;
}

async function newWorld(): Promise<World> {
  const database = inlineSqlite(new DatabaseSync(":memory:", { enableForeignKeyConstraints: true }));
  await migrate(database);
  await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
  await sqlAppStore(database).insertApp(anApp({ id: "a1", name: "web", org_id: "o1" }), 10);
  return { database, dir: tempDir(), ids: randomIds(systemClock) };
}

/** A process over the world; with a fuse, one that will end. */
async function boot({ database, dir }: World, fuse?: Fuse): Promise<{ module: VolumeModule; disk: SimDisk }> {
  const hosts = new HostService({ store: sqlHostStore(database), own: declaredHosts([]) });
  await hosts.start();
  const disk = new SimDisk(join(dir, "volumes"));
  await disk.start();
  const real = { store: sqlVolumeStore(database), disk, objects: new LocalObjects(join(dir, "objects")) };
  const wrapped: { store: VolumeStore; disk: SimDisk; objects: ObjectStore } = fuse
    ? { store: fuse.protect(real.store), disk: fuse.protect(real.disk), objects: fuse.protect(real.objects) }
    : real;
  const parts = { ...wrapped, hosts, sealer, clock: systemClock, log: silentLog, undelete_ms: 0 };
  const module = new VolumeModule(parts);
  // Without its upkeep, which would make the number of calls a matter of time.
  const started = module.executor.start();
  if (!fuse) await started;
  return { module, disk };
}

/** Resolves when nothing is being done; never in a process that has ended. */
async function idle({ executor }: VolumeModule): Promise<boolean> {
  while (!executor.idle) await new Promise((resolve) => setTimeout(resolve, 2).unref());
  return true;
}

/** A volume with something in it, and a snapshot of that. */
async function furnish(world: World): Promise<{ volume: string; snapshot: string }> {
  const { module, disk } = await boot(world);
  const { id } = await module.volumes.create(OWNER, { name: "data", size_gb: 1 }, world.ids);
  const volume = await module.volumes.get("a1", id);
  await disk.poke(new VolumeKeys(sealer).open(volume), SECTOR, CONTENT);
  const snapshot = await module.snapshots.create(id, world.ids);
  await idle(module);
  return { volume: id, snapshot: snapshot.id };
}

type Furniture = Awaited<ReturnType<typeof furnish>>;
const more = { require_unique_zone: false, region: "local" };

const OPERATIONS: Record<string, (module: VolumeModule, ids: Ids, it: Furniture) => Promise<unknown>> = {
  create: (module, ids) => module.volumes.create(OWNER, { name: "made", size_gb: 1, ...more }, ids),
  extend: (module, ids, { volume }) => module.volumes.extend(volume, 2, ids),
  snapshot: (module, ids, { volume }) => module.snapshots.create(volume, ids),
  fork: (module, ids, { volume }) =>
    module.volumes.create(OWNER, { name: "fork", source_volume_id: volume, ...more }, ids),
  restore: (module, ids, { snapshot }) =>
    module.volumes.create(OWNER, { name: "copy", snapshot_id: snapshot, ...more }, ids),
  "delete and purge": async (module, ids, { volume }) => {
    const spare = await module.volumes.create(OWNER, { name: "fork", source_volume_id: volume, ...more }, ids);
    await module.garbage.purge(await module.volumes.delete(spare.id));
  },
  "snapshot deleted": async (module, _ids, { volume, snapshot }) =>
    await module.snapshots.delete(await module.snapshots.get("a1", volume, snapshot)),
};

/** Everything rests, has its content, and what is left over is found and goes. */
async function inspect(world: World): Promise<void> {
  const { module, disk } = await boot(world);
  await idle(module);
  for (const volume of await module.volumes.list("a1", { include_deleted: true })) {
    assert.ok(["created", "destroyed"].includes(volume.state), `${volume.name} is ${volume.state}`);
    if (volume.state === "destroyed" || volume.name === "made") continue;
    const bytes = await disk.peek(new VolumeKeys(sealer).open(volume), SECTOR, 2);
    assert.ok(bytes.equals(CONTENT), `${volume.name} has its content`);
    const { blocks, block_size } = await disk.usage(new VolumeKeys(sealer).open(volume));
    assert.equal(blocks * block_size, volume.size_gb * 1024 ** 3, "it is as large as it says");
    for (const snapshot of await module.snapshots.list("a1", volume.id)) {
      assert.equal(snapshot.status, "created");
      const wish = { name: "check", snapshot_id: snapshot.id, ...more };
      const copy = await module.volumes.create(OWNER, wish, world.ids);
      await idle(module);
      const restored = new VolumeKeys(sealer).open(await module.volumes.get("a1", copy.id));
      assert.ok((await disk.peek(restored, SECTOR, 2)).equals(CONTENT), "a snapshot that is listed can be restored");
      await module.garbage.purge(await module.volumes.delete(copy.id));
    }
  }
  await module.garbage.collect({ deleted: true, unknown: true });
  assert.deepEqual(await module.garbage.preview({ deleted: true, unknown: true }), []);
  assert.deepEqual(await module.parts.store.unfinished(["0001"]), []);
}

/** One world, one operation, one crash; true when the operation was over before. */
async function crash(operate: (typeof OPERATIONS)[string], fuse: Fuse): Promise<boolean> {
  const world = await newWorld();
  const it = await furnish(world);
  const { module } = await boot(world, fuse);
  const over = operate(module, world.ids, it)
    .then(() => idle(module))
    .catch((error: unknown) => {
      if (!fuse.burnt) throw error;
      return false;
    });
  if (await Promise.race([over, fuse.ended.then(() => false)])) return true;
  await fuse.still();
  await inspect(world);
  return false;
}

/** Every place when it is to be proved; otherwise some, others at every run. */
const STRIDE = runs(6, 1);

/** The first always: an operation may have no more than a few. */
function* places(first: number): Generator<number> {
  yield 0;
  for (let at = first + 1; ; at += STRIDE) yield at;
}

/** Crashes before and after each of some of its calls; answers at how many. */
async function crashes(t: TestContext, operate: (typeof OPERATIONS)[string]): Promise<number> {
  let points = 0;
  for (const at of places(Math.floor(random(seed(t))() * STRIDE))) {
    for (const after of [false, true]) {
      if (await crash(operate, new Fuse(at, after))) return points;
      points++;
    }
  }
  return points;
}

suite("volumes: crash at every step", () => {
  for (const [name, operate] of Object.entries(OPERATIONS)) {
    test(`${name} is finished or undone after a crash at any call`, async (t) => {
      const points = await crashes(t, operate);
      assert.ok(points > 0, "it made calls");
      t.diagnostic(`${points} places`);
    });
  }
});
