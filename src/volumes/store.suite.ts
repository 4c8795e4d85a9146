import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { anOperation, aSnapshot, aVolume } from "./fixtures.ts";
import type { VolumeStore } from "./store.ts";

/** What every VolumeStore must do. `open` gives an empty one in which organization o1 has the apps a1 and a2. */
export function volumeStoreSuite(
  name: string,
  open: () => Promise<{ store: VolumeStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`volume store: ${name}`, { skip }, () => {
    async function withStore(work: (store: VolumeStore) => Promise<void>): Promise<void> {
      const { store, close } = await open();
      try {
        await work(store);
      } finally {
        await close();
      }
    }
    const free = { limit: 100, unique_zone: false } as const;
    const alone = { limit: 100, unique_zone: "name" } as const;

    test("a volume is read back as it was written, with its operations in order", () =>
      withStore(async (store) => {
        const volume = aVolume({
          encryption: "fscrypt",
          sealed_key: Uint8Array.of(1, 2),
          needs_restart: true,
          usage: { blocks: 9, block_size: 4096, blocks_free: 5, blocks_avail: 4 },
          next_backup_at: 7,
        });
        const second = anOperation({ id: "op2", position: 2, kind: "extend", payload: { from_gb: 1 } });
        assert.equal(await store.insert({ volume, add_operations: [second, anOperation()] }, free), "inserted");
        assert.equal(await store.insert({ volume, add_operations: [] }, free), "exists");
        const { sealed_key, ...found } = (await store.find("vol_1")) ?? aVolume();
        assert.deepEqual({ ...found, sealed_key: Uint8Array.from(sealed_key ?? []) }, volume);
        const work = await store.findWork("vol_1");
        assert.deepEqual(work?.operations, [anOperation(), second]);
        assert.deepEqual(work?.volume.usage, volume.usage);
        assert.deepEqual(await store.unfinished(["0001"]), ["vol_1"]);
        assert.deepEqual(await store.unfinished(["0002"]), []);
        assert.equal(await store.findWork("vol_2"), undefined);
        assert.equal(await store.forget("vol_1"), false, "it is not deleted");
        const deleted = { volume: { ...volume, revision: 2, state: "destroyed" as const } };
        assert.ok(await store.commit({ ...deleted, remove_operations: ["op1"] }));
        assert.equal(await store.forget("vol_1"), false, "an operation needs it");
        assert.ok(await store.commit({ volume: { ...deleted.volume, revision: 3 }, remove_operations: ["op2"] }));
        assert.equal(await store.forget("vol_1"), true);
        assert.equal(await store.find("vol_1"), undefined);
        assert.deepEqual(await store.unfinished(["0001"]), []);
      }));

    test("a volume that is attached to a machine is neither deleted nor pruned", () =>
      withStore(async (store) => {
        const volume = aVolume({ attached_machine_id: "m1" });
        await store.insert({ volume }, free);
        const deleted = { ...volume, revision: 2, state: "destroyed" as const, purge_at: 1 };
        assert.equal(await store.commit({ volume: deleted, only_detached: true }), false);
        assert.equal(await store.detaching(volume.id), false, "its machine is not being destroyed");
        assert.ok(await store.commit({ volume: deleted }));
        assert.deepEqual((await store.due(["0001"], 2)).purge, []);
        assert.equal(await store.forget(volume.id), false);
      }));

    test("a moved volume belongs to the new host; pending operations stay at the old one", () =>
      withStore(async (store) => {
        const volume = aVolume({});
        await store.insert({ volume }, free);
        const to = { host_id: "0002", region: "ams", zone: "z2" };
        const moved = { ...volume, ...to, revision: 2 };
        const clear = anOperation({ id: "op9", kind: "clear", payload: {} });
        assert.ok(await store.commit({ volume: moved, add_operations: [clear] }));
        const work = await store.findWork(volume.id);
        assert.deepEqual([work?.volume.host_id, work?.volume.region, work?.volume.zone], ["0002", "ams", "z2"]);
        assert.deepEqual(work?.operations, [clear]);
        assert.deepEqual(await store.unfinished(["0001"]), [volume.id]);
        assert.deepEqual(await store.unfinished(["0002"]), []);
      }));

    test("of concurrent inserts with unique_zone exactly one gets the zone; deleted volumes do not count", () =>
      withStore(async (store) => {
        const input = (i: number) => ({ volume: aVolume({ id: `vol_${i}`, created_at: i }) });
        const results = await Promise.all(Array.from({ length: 10 }, (_, i) => store.insert(input(i), alone)));
        assert.equal(results.filter((one) => one === "inserted").length, 1);
        assert.equal(results.filter((one) => one === "zone_taken").length, 9);
        assert.equal(await store.insert({ volume: aVolume({ id: "other", app_id: "a2" }) }, alone), "inserted");
        assert.equal(await store.insert({ volume: aVolume({ id: "gone", app_id: "none" }) }, alone), "no_app");
        const [made] = await store.list("a1", {});
        assert.deepEqual(await store.zones("a1", "data"), ["0001"]);
        assert.ok(
          made && (await store.commit({ volume: { ...made, revision: 2, state: "destroyed", deleted_at: 5 } })),
        );
        assert.deepEqual(await store.zones("a1", "data"), []);
        assert.equal(await store.insert({ volume: aVolume({ id: "next" }) }, alone), "inserted");
        assert.deepEqual([await store.count("a1"), (await store.list("a1", { include_deleted: true })).length], [1, 2]);
        assert.deepEqual(Object.fromEntries(await store.counts({ org_id: made.org_id })), { a1: 1, a2: 1 });
        assert.deepEqual(Object.fromEntries(await store.counts({ app_id: "a2" })), { a2: 1 });
        const [first, second] = await store.list("a1", { include_deleted: true });
        assert.ok(first && second);
        const page = { after: [first.created_at, first.id], limit: 1 } as const;
        assert.deepEqual(await store.list("a1", { include_deleted: true, page }), [second]);
        assert.equal((await store.counts({ org_id: "none" })).size, 0);
        const over = { limit: 2, unique_zone: false } as const;
        assert.equal(await store.insert({ volume: aVolume({ id: "over" }) }, over), "limit");
      }));

    test("of concurrent commits only one based on the newest revision is written, completely", () =>
      withStore(async (store) => {
        const volume = aVolume();
        await store.insert({ volume }, free);
        const add = (id: string) => ({ add_operations: [anOperation({ id })] });
        const next = { ...volume, revision: 2, size_gb: 9 };
        const results = await Promise.all(["a", "b", "c"].map((id) => store.commit({ volume: next, ...add(id) })));
        assert.equal(results.filter(Boolean).length, 1);
        assert.equal((await store.findWork("vol_1"))?.operations.length, 1);
        assert.equal((await store.find("vol_1"))?.size_gb, 9);
      }));

    test("a snapshot is found, finished once, and outlives its volume", () =>
      withStore(async (store) => {
        const volume = aVolume({ state: "destroyed" });
        await store.insert({ volume, add_snapshots: [aSnapshot(), aSnapshot({ id: "vs_2", created_at: 9 })] }, free);
        const done = aSnapshot({ status: "created", size: 5, stored: 4, digest: "d", finished_at: 8 });
        assert.equal(await store.finishSnapshot(done, ["p1", "p2"]), true);
        assert.equal(await store.finishSnapshot({ ...done, digest: "x" }, []), false);
        await store.putSnapshot({ ...done, message: "late" });
        assert.equal(await store.forget("vol_1"), true);
        assert.deepEqual({ ...(await store.findSnapshot("vs_1")) }, done);
        assert.deepEqual(
          (await store.snapshots("vol_1")).map(({ id }) => id),
          ["vs_1", "vs_2"],
        );
        assert.deepEqual([...(await store.packs())].toSorted(), ["p1", "p2"]);
      }));

    test("packs are deleted with the last snapshot that uses them; a snapshot in use is not deleted", () =>
      withStore(async (store) => {
        const building = aSnapshot({ id: "vs_3", status: "running", base_snapshot_id: "vs_2" });
        const all = [aSnapshot(), aSnapshot({ id: "vs_2" }), building];
        await store.insert({ volume: aVolume(), add_snapshots: all }, free);
        const done = aSnapshot({ status: "created", expires_at: 100 });
        await store.finishSnapshot(done, ["p1", "p2"]);
        await store.finishSnapshot({ ...done, id: "vs_2" }, ["p2", "p3"]);
        assert.deepEqual(
          (await store.expired(Number.MAX_SAFE_INTEGER)).map(({ id }) => id),
          ["vs_1"],
        );
        assert.equal(await store.forgetSnapshot("vs_2"), false);
        assert.deepEqual(await store.forgetSnapshot("vs_1"), ["p1"]);
        await store.finishSnapshot({ ...building, status: "created" }, ["p3", "p4"]);
        assert.deepEqual(await store.forgetSnapshot("vs_2"), ["p2"]);
        assert.deepEqual(await store.forgetSnapshot("vs_2"), []);
        const restore = anOperation({ kind: "restore", payload: { snapshot_id: "vs_3" } });
        const source = { snapshot_id: "vs_3" };
        const restored = { volume: aVolume({ id: "vol_2" }), add_operations: [{ ...restore, volume_id: "vol_2" }] };
        assert.equal(await store.insert(restored, { ...free, source }), "inserted");
        assert.equal(await store.forgetSnapshot("vs_3"), false);
        const destroyed = { ...restored.volume, state: "destroyed" as const, revision: 2 };
        assert.ok(await store.commit({ volume: destroyed, unfill: true }));
        assert.deepEqual((await store.forgetSnapshot("vs_3")) || [], ["p3", "p4"]);
        assert.equal(await store.insert({ volume: aVolume({ id: "vol_3" }) }, { ...free, source }), "no_source");
      }));

    test("a database keeps the first identity it was given", () =>
      withStore(async (store) => {
        assert.equal(await store.identity("one"), "one");
        assert.equal(await store.identity("two"), "one");
      }));

    test("due work lists daily snapshots, data to delete and volumes without an app", () =>
      withStore(async (store) => {
        const due = async (now: number) => {
          const found = await store.due(["0001"], now);
          return [found.backup, found.purge, found.orphans].map((list) => list.map(({ id }) => id));
        };
        await store.insert({ volume: aVolume({ id: "b", next_backup_at: 50 }) }, free);
        await store.insert({ volume: aVolume({ id: "p", state: "destroyed", purge_at: 60 }) }, free);
        await store.insert({ volume: aVolume({ id: "else", host_id: "0002", next_backup_at: 1 }) }, free);
        const busy = anOperation({ id: "x", volume_id: "q", kind: "snapshot" });
        const kept = { volume: aVolume({ id: "q", state: "destroyed", purge_at: 60 }), add_operations: [busy] };
        await store.insert(kept, free);
        assert.deepEqual(await due(49), [[], [], []]);
        assert.deepEqual(await due(60), [["b"], ["p"], []]);
      }));
  });
}
