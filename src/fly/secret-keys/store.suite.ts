import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { SecretKey, SecretKeyStore } from "./store.ts";

const aKey = (change: Partial<SecretKey> = {}): Omit<SecretKey, "version"> => ({
  name: "signing-v1",
  type: "hs256",
  sealed: Uint8Array.of(1, 2, 3),
  public_key: null,
  created_at: 1,
  updated_at: 1,
  ...change,
});

/** What every SecretKeyStore must do. `open` gives an empty one in which apps a1 and a2 exist. */
export function secretKeyStoreSuite(
  name: string,
  open: () => Promise<{ store: SecretKeyStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`secret key store: ${name}`, { skip }, () => {
    async function withStore(work: (store: SecretKeyStore) => Promise<void>): Promise<void> {
      const { store, close } = await open();
      try {
        await work(store);
      } finally {
        await close();
      }
    }

    test("a key is put, found, replaced with a higher version, and removed", () =>
      withStore(async (store) => {
        assert.equal(await store.put("a1", aKey(), 9), 1);
        const public_key = Uint8Array.of(7);
        const later = aKey({ type: "nacl_sign", sealed: Uint8Array.of(9), public_key, created_at: 5, updated_at: 6 });
        assert.equal(await store.put("a1", later, 9), 2);
        const found = await store.find("a1", "signing-v1");
        assert.deepEqual([found?.type, found?.version, found?.created_at, found?.updated_at], ["nacl_sign", 2, 1, 6]);
        assert.deepEqual([[...(found?.sealed ?? [])], [...(found?.public_key ?? [])]], [[9], [7]]);
        assert.equal(await store.find("a2", "signing-v1"), undefined);
        assert.equal(await store.remove("a2", "signing-v1"), false);
        assert.equal(await store.remove("a1", "signing-v1"), true);
        assert.deepEqual(await store.list("a1"), []);
      }));

    test("keys are listed by name, and only those of the app", () =>
      withStore(async (store) => {
        for (const key of ["c", "a", "b"]) await store.put("a1", aKey({ name: key }), 9);
        await store.put("a2", aKey({ name: "other" }), 9);
        assert.deepEqual(
          (await store.list("a1")).map((key) => key.name),
          ["a", "b", "c"],
        );
      }));

    test("the limit holds under concurrent puts, and a deleted app has no keys", () =>
      withStore(async (store) => {
        const results = await Promise.all(
          Array.from({ length: 10 }, (_, at) => store.put("a1", aKey({ name: `key-${at}` }), 4)),
        );
        assert.equal(results.filter((one) => one === 1).length, 4);
        assert.equal(results.filter((one) => one === "limit").length, 6);
        const [first] = await store.list("a1");
        assert.equal(await store.put("a1", aKey({ name: first?.name ?? "" }), 4), 2, "a replaced key needs no room");
        assert.equal(await store.put("gone", aKey(), 4), "no_app");
      }));
  });
}
