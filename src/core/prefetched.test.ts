import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  confirmPrefetched,
  forgetPrefetched,
  Prefetched,
  type Recollection,
  takePrefetched,
  withPrefetched,
} from "./prefetched.ts";

type Reading = NonNullable<Recollection["last"]>;
const reading = (id: number): Reading => ({ found: [{ id }], keepAll: (keep) => keep("app", "web", { id }) });
const one = (): Prefetched => new Prefetched(async () => reading(1));
const take = (): Promise<unknown> => takePrefetched("app", "web");

suite("prefetched rows", () => {
  test("a prefetched row is used once, by its own request only", async () => {
    assert.equal(await take(), undefined, "there is no request");
    await withPrefetched(one(), async () => {
      assert.equal(await takePrefetched("app", "other"), undefined);
      assert.deepEqual(await take(), { id: 1 });
      assert.equal(await take(), undefined, "a second lookup reads again");
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

  suite("with cached rows", () => {
    function again(last: Reading | undefined, now: Promise<Reading>): { run(): Promise<unknown[]>; kept: Reading[] } {
      const kept: Reading[] = [];
      const prefetched = new Prefetched(() => now, { last, remember: (it) => void kept.push(it) });
      const results: unknown[] = [];
      const work = async (): Promise<unknown[]> => {
        results.push(await take());
        await confirmPrefetched();
        return results;
      };
      return { run: () => withPrefetched(prefetched, work), kept };
    }

    test("a request starts before its rows have arrived, and completes when they are unchanged", async () => {
      const arriving = Promise.withResolvers<Reading>();
      const { run, kept } = again(reading(1), arriving.promise);
      let done = false;
      const answer = run().then((results) => {
        done = true;
        return results;
      });
      await new Promise(setImmediate);
      assert.equal(done, false, "no response before the rows are confirmed");
      arriving.resolve(reading(1));
      assert.deepEqual(await answer, [{ id: 1 }]);
      assert.equal(kept.length, 1);
    });

    test("a request runs again on the new rows when they have changed", async () => {
      assert.deepEqual(await again(reading(1), Promise.resolve(reading(2))).run(), [{ id: 1 }, { id: 2 }]);
    });

    test("a refusal on changed rows runs again, one on unchanged rows is returned", async () => {
      const decide = async (now: Reading): Promise<string> => {
        const prefetched = new Prefetched(async () => now, { last: reading(1), remember: () => {} });
        return await withPrefetched(prefetched, async () => {
          assert.notDeepEqual(await take(), { id: 1 }, "refused");
          return "allowed";
        });
      };
      assert.equal(await decide(reading(2)), "allowed");
      await assert.rejects(decide(reading(1)), /refused/);
    });

    test("a first request waits for its rows, and the next one starts with them", async () => {
      const { run, kept } = again(undefined, Promise.resolve(reading(3)));
      assert.deepEqual(await run(), [{ id: 3 }]);
      assert.deepEqual(kept[0]?.found, [{ id: 3 }]);
    });

    test("a request fails when the rows cannot be read", async () => {
      await assert.rejects(again(reading(1), Promise.reject(new Error("away"))).run(), /away/);
    });
  });
});
