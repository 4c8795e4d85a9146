import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { forgetPrefetched, Prefetched, takePrefetched, withPrefetched } from "./prefetched.ts";

const one = (): Prefetched => new Prefetched(async (keep) => keep("app", "web", { id: 1 }));
const take = (): Promise<unknown> => takePrefetched("app", "web");

suite("prefetched", () => {
  test("what was read for a request is used once, and by that request alone", async () => {
    assert.equal(await take(), undefined, "there is no request");
    await withPrefetched(one(), async () => {
      assert.equal(await takePrefetched("app", "other"), undefined);
      assert.deepEqual(await take(), { id: 1 });
      assert.equal(await take(), undefined, "whoever looks again reads anew");
    });
  });

  test("nothing of it is left after a write, nor for what goes on after the request", async () => {
    await withPrefetched(one(), async () => {
      forgetPrefetched();
      assert.equal(await take(), undefined);
    });
    const gate = Promise.withResolvers<void>();
    const later = await withPrefetched(one(), async () => ({ done: gate.promise.then(take) }));
    gate.resolve();
    assert.equal(await later.done, undefined);
  });

  test("a reading that failed fails the lookup, and nobody who does not look", async () => {
    const failed = (): Prefetched => new Prefetched(() => Promise.reject(new Error("away")));
    await withPrefetched(failed(), async () => {});
    await withPrefetched(failed(), () => assert.rejects(take(), /away/));
  });
});
