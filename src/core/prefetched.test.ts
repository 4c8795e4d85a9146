import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { forgetPrefetched, Prefetched, takePrefetched, withPrefetched } from "./prefetched.ts";

const one = (): Prefetched => new Prefetched(async (keep) => keep("app", "web", { id: 1 }));
const take = (): Promise<unknown> => takePrefetched("app", "web");

suite("prefetched rows", () => {
  test("a prefetched row is used once, by its own request only", async () => {
    assert.equal(await take(), undefined, "there is no request");
    await withPrefetched(one(), async () => {
      assert.equal(await takePrefetched("app", "other"), undefined);
      assert.deepEqual(await take(), { id: 1 });
      assert.equal(await take(), undefined, "whoever looks again reads anew");
    });
  });

  test("prefetched rows are dropped after a write and at the end of the request", async () => {
    await withPrefetched(one(), async () => {
      forgetPrefetched();
      assert.equal(await take(), undefined);
    });
    const gate = Promise.withResolvers<void>();
    const later = await withPrefetched(one(), async () => ({ done: gate.promise.then(take) }));
    gate.resolve();
    assert.equal(await later.done, undefined);
  });

  test("a failed prefetch fails the lookup that uses it, and no other", async () => {
    const failed = (): Prefetched => new Prefetched(() => Promise.reject(new Error("away")));
    await withPrefetched(failed(), async () => {});
    await withPrefetched(failed(), () => assert.rejects(take(), /away/));
  });
});
