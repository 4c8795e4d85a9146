import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { anApp } from "#apps/fixtures.ts";
import { anOrg } from "#auth/fixtures.ts";
import { systemClock } from "#core/clock.ts";
import { StoreError } from "#core/errors.ts";
import { randomIds } from "#core/ids.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { SimDisk } from "#drivers/disk/sim.ts";
import { HostService } from "#hosts/service.ts";
import { migrate } from "#stores/migrate.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { sqlAppStore } from "#stores/sql/apps.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlHostStore } from "#stores/sql/hosts.ts";
import { sqlVolumeStore } from "#stores/sql/volumes.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { tempDir, until } from "../../test/support.ts";
import { anOperation, aVolume } from "./fixtures.ts";
import { VolumeModule } from "./module.ts";
import type { VolumeStore } from "./store.ts";

const [HERE, THERE] = ["000a", "000b"];
const host = (id: string) => ({ id, region: "local", zone: id, cpus: 0, memory_mb: 0 });
const OWNER = { org_id: "o1", app_id: "a1", app_name: "web" };
const ids = randomIds(systemClock);

/** The volumes module with simulated volumes, on two hosts of this process. */
async function openVolumeHarness(t: TestContext, wrap: (store: VolumeStore) => VolumeStore = (store) => store) {
  const database = inlineSqlite();
  await migrate(database);
  await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
  await sqlAppStore(database).insertApp(anApp({ id: "a1", name: "web", org_id: "o1" }), 10);
  const hosts = new HostService({ store: sqlHostStore(database), own: [host(HERE), host(THERE)] });
  await hosts.start();
  const dir = tempDir();
  const store = wrap(sqlVolumeStore(database));
  const disk = new SimDisk(join(dir, "volumes"));
  const objects = new LocalObjects(join(dir, "objects"));
  const sealer = new Sealer(Buffer.alloc(32, 7));
  const parts = { store, hosts, disk, objects, sealer, clock: systemClock, log: silentLog, undelete_ms: 0 };
  const module = new VolumeModule(parts);
  await module.start();
  t.after(() => module.close());
  return { module, store, disk };
}

suite("volume executor", () => {
  test("a volume whose snapshot is deleted during a move stays where it is, intact", async (t) => {
    const { module, store, disk } = await openVolumeHarness(t, (real) => ({
      ...real,
      async finishSnapshot(snapshot, packs) {
        const finished = await real.finishSnapshot(snapshot, packs);
        assert.notEqual(await real.forgetSnapshot(snapshot.id), false);
        return finished;
      },
    }));
    const { id, host_id } = await module.volumes.create(OWNER, { name: "data" }, ids);
    await module.volumes.move(id, host_id === HERE ? THERE : HERE, ids);
    const volume = await until("it rests", async () => {
      const found = await store.find(id);
      return found?.state === "moving" || found?.state === "restoring" ? undefined : found;
    });
    assert.deepEqual([volume.state, volume.host_id], ["created", host_id]);
    assert.match(volume.error ?? "", /was deleted before the volume could move/);
    assert.ok((await disk.inventory()).volumes.has(id));
  });

  test("a short outage of the store does not count as a failed attempt", async (t) => {
    const tries: (number | undefined)[] = [];
    let met = false;
    const { module, store } = await openVolumeHarness(t, (real) => ({
      ...real,
      async putSnapshot(snapshot) {
        if (met) return await real.putSnapshot(snapshot);
        met = true;
        throw new StoreError("storage_failed", "the database cannot be reached");
      },
      async finishSnapshot(snapshot, packs) {
        tries.push((await real.findWork(snapshot.volume_id))?.operations[0]?.tries);
        return await real.finishSnapshot(snapshot, packs);
      },
    }));
    const { id } = await module.volumes.create(OWNER, { name: "data" }, ids);
    const snapshot = await module.snapshots.create(id, ids);
    await until("it is kept", async () => (await store.findSnapshot(snapshot.id))?.status === "created");
    assert.deepEqual([met, tries], [true, [0]]);
  });

  test("a caller that waits for an operation returns when another process completes it", async (t) => {
    const { module, store } = await openVolumeHarness(t);
    const volume = aVolume({ host_id: "000c", zone: "000c" });
    const add_operations = [anOperation({ host_id: "000c", kind: "extend" })];
    await store.insert({ volume, add_operations }, { limit: 10, unique_zone: false });
    const over = module.executor.ended("vol_1", "op1");
    await until("somebody waits", () => module.executor.awaited === 1);
    assert.ok(await store.commit({ volume: { ...volume, revision: 2 }, remove_operations: ["op1"] }));
    assert.equal(await over, true);
    assert.equal(module.executor.awaited, 0);
  });
});
