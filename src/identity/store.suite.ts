import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { KeyStore, SigningKey } from "./store.ts";

/** What every KeyStore must do. `open` gives an empty one with the organization o1. */
export function keyStoreSuite(
  name: string,
  open: () => Promise<{ store: KeyStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`key store: ${name}`, { skip }, () => {
    test("signing keys follow each other, one at a time, and are deleted when no longer published", async () => {
      const { store, close } = await open();
      const key = (id: string, sign_from: number, alg: "RS256" | "ES256" = "RS256"): SigningKey => ({
        id,
        org_id: "o1",
        alg,
        public_jwk: "{}",
        private_key: Uint8Array.of(1),
        created_at: 1,
        sign_from,
        publish_until: null,
      });
      const ids = async () => (await store.keys("o1")).map(({ id, publish_until }) => `${id} ${publish_until}`);
      assert.equal(await store.insertKey(key("a", 100), 300, 50), true);
      assert.equal(await store.insertKey(key("late", 110), 310, 60), false);
      assert.equal(await store.insertKey(key("e", 100, "ES256"), 300, 50), true);
      assert.deepEqual(await ids(), ["a null", "e null"]);
      const both = await Promise.all([
        store.insertKey(key("b", 200), 400, 150),
        store.insertKey(key("c", 201), 401, 151),
      ]);
      assert.equal(both.filter(Boolean).length, 1, "of two that come together one is kept");
      const [newest, ...rest] = await ids();
      assert.match(newest ?? "", /^[bc] null$/);
      assert.deepEqual(rest, [both[0] ? "a 400" : "a 401", "e null"]);
      await store.purgeKeys("o1", 399);
      assert.equal((await ids()).length, 3);
      await store.purgeKeys("o1", 402);
      assert.deepEqual(await ids(), [newest, "e null"]);
      assert.deepEqual(await store.keys("o2"), []);
      assert.equal(await store.insertKey({ ...key("x", 1), org_id: "o9" }, 1, 0), false);
      await close();
    });
  });
}
