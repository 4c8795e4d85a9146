import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { AddressStore } from "./store.ts";
import type { IpAssignment } from "./types.ts";

const one: IpAssignment = {
  ip: "127.64.0.1",
  app_id: "a1",
  type: "v4",
  region: "local",
  shared: false,
  service_name: null,
  network: null,
  created_at: 5,
};

/** What every AddressStore must do. `open` gives an empty one with the apps a1 and a2. */
export function addressStoreSuite(
  name: string,
  open: () => Promise<{ store: AddressStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`address store: ${name}`, { skip }, () => {
    test("a dedicated address has one owner, a shared one any number", async () => {
      const { store, close } = await open();
      const shared: IpAssignment = { ...one, ip: "127.0.0.1", type: "shared_v4", shared: true, created_at: 6 };
      assert.equal(await store.insertAssignment(one, 9), "inserted");
      assert.equal(await store.insertAssignment(one, 9), "exists");
      assert.equal(await store.insertAssignment({ ...one, app_id: "a2" }, 9), "taken");
      assert.equal(await store.insertAssignment(shared, 9), "inserted");
      assert.equal(await store.insertAssignment({ ...shared, app_id: "a2" }, 9), "inserted");
      assert.equal(await store.insertAssignment({ ...shared, app_id: "nobody" }, 9), "no_app");
      assert.deepEqual(await store.assignments("a1"), [one, shared]);
      assert.equal((await store.assignments()).length, 3);
      assert.deepEqual(
        (await store.exposed()).map(({ id }) => id),
        ["a1", "a2"],
      );
      await close();
    });

    test("the address limit of an app holds, and a released address makes room", async () => {
      const { store, close } = await open();
      assert.equal(await store.insertAssignment(one, 1), "inserted");
      assert.equal(await store.insertAssignment({ ...one, ip: "127.64.0.2" }, 1), "limit");
      assert.equal(await store.deleteAssignment("a2", one.ip), false);
      assert.equal(await store.deleteAssignment("a1", one.ip), true);
      assert.equal(await store.insertAssignment({ ...one, ip: "127.64.0.2" }, 1), "inserted");
      await close();
    });
  });
}
