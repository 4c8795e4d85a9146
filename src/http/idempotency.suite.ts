import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { IdempotencyEntry, IdempotencyStore } from "./idempotency.ts";

const entry = (change: Partial<IdempotencyEntry> = {}): IdempotencyEntry => ({
  key: "k1",
  fingerprint: "f1",
  seed: Uint8Array.of(1),
  runner: "r1",
  started_at: 1000,
  answer: null,
  ...change,
});

/** What every IdempotencyStore must do. */
export function idempotencyStoreSuite(
  name: string,
  open: () => Promise<{ store: IdempotencyStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`idempotency store: ${name}`, { skip }, () => {
    test("a key has one runner until it has a response", async () => {
      const { store, close } = await open();
      assert.equal((await store.begin(entry(), 0)).runner, "r1");
      const second = await store.begin(entry({ runner: "r2", seed: Uint8Array.of(2) }), 0);
      assert.deepEqual([second.runner, second.answer], ["r1", null]);
      await store.finish("k1", Uint8Array.of(9));
      const third = await store.begin(entry({ runner: "r2" }), 0);
      assert.deepEqual(Buffer.from(third.answer ?? []), Buffer.of(9));
      await close();
    });

    test("the same runner, or any after the timeout, takes over an unanswered key with its seed and time", async () => {
      const { store, close } = await open();
      await store.begin(entry(), 0);
      const again = await store.begin(entry({ seed: Uint8Array.of(7), started_at: 5000 }), 0);
      assert.deepEqual([again.seed[0], again.started_at], [1, 1000]);
      const taken = await store.begin(entry({ runner: "r2", seed: Uint8Array.of(7), started_at: 9000 }), 2000);
      assert.deepEqual([taken.runner, taken.seed[0], taken.started_at], ["r2", 1, 1000]);
      await close();
    });

    test("a key is bound to the fingerprint of its request", async () => {
      const { store, close } = await open();
      await store.begin(entry(), 0);
      assert.equal((await store.begin(entry({ fingerprint: "f2" }), 5000)).fingerprint, "f1");
      await store.forget("k1");
      assert.equal((await store.begin(entry({ fingerprint: "f2" }), 0)).fingerprint, "f2");
      await close();
    });

    test("expired keys are deleted", async () => {
      const { store, close } = await open();
      await store.begin(entry(), 0);
      await store.begin(entry({ key: "k2", started_at: 3000 }), 0);
      assert.equal(await store.expire(2000), 1);
      assert.equal(await store.expire(2000), 0);
      await close();
    });
  });
}
