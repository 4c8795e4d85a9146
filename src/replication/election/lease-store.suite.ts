import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import type { Candidate, LeaseStore } from "./lease-store.ts";

export interface OpenedLeases {
  /** Two views of one store, as two nodes have them. */
  a: LeaseStore;
  b: LeaseStore;
  /** Lets a lease of `ttl_ms` run out. */
  pass(ttl_ms: number): Promise<void>;
  close(): Promise<void>;
}

function candidate(node: string, complete_term = 0): Candidate {
  return { node, url: `http://${node}:20202`, term: complete_term, complete_term };
}

/** What every LeaseStore must do. `ttl_ms` is the shortest time to live the store is good at. */
export function leaseStoreSuite(
  name: string,
  ttl_ms: number,
  open: (t: TestContext) => Promise<OpenedLeases>,
  skip?: string,
): void {
  suite(`lease store: ${name}`, { skip: skip ?? false }, () => {
    const story = (title: string, tell: (leases: OpenedLeases) => Promise<void>): void => {
      test(title, async (t) => {
        const leases = await open(t);
        try {
          await tell(leases);
        } finally {
          await leases.close();
        }
      });
    };

    story("one of two nodes acquires the lease, and both see the holder", async ({ a, b }) => {
      const lease = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(lease && lease.term > 0);
      assert.equal(await b.acquire(candidate("two"), ttl_ms), undefined);
      assert.deepEqual(await b.holder(), lease);
      assert.equal(lease.url, "http://one:20202");
    });

    story("an expired lease goes to the next node with a higher term", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      // Candidates poll all the time; some stores measure from what each candidate has seen itself.
      assert.ok(await b.holder());
      await pass(ttl_ms);
      assert.equal(await b.holder(), undefined);
      const second = await b.acquire(candidate("two", first.term), ttl_ms);
      assert.ok(second && second.term > first.term);
      assert.equal(await a.renew(first, ttl_ms), false);
      assert.deepEqual(await a.holder(), second);
    });

    story("renewing keeps the lease", async ({ a, b, pass }) => {
      const lease = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(lease);
      for (let i = 0; i < 3; i++) {
        await pass(ttl_ms / 3);
        assert.equal(await a.renew(lease, ttl_ms), true);
      }
      assert.equal(await b.acquire(candidate("two", lease.term), ttl_ms), undefined);
    });

    story("concurrent renewals keep the lease", async ({ a, b }) => {
      const lease = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(lease);
      const renewed = await Promise.all(Array.from({ length: 5 }, () => a.renew(lease, ttl_ms)));
      assert.deepEqual(renewed, Array(5).fill(true));
      assert.deepEqual(await b.holder(), lease);
    });

    story("a release during a renewal releases the lease", async ({ a, b }) => {
      const lease = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(lease && (await a.renew(lease, ttl_ms)));
      await Promise.all([a.renew(lease, ttl_ms), a.release(lease), a.renew(lease, ttl_ms)]);
      assert.equal(await b.holder(), undefined);
    });

    story("a released lease can be acquired at once", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      await a.release(first);
      assert.equal(await a.holder(), undefined);
      assert.ok(await b.acquire(candidate("two", first.term), ttl_ms));
    });

    story(
      "a lease released to a successor is reserved for it until the reservation expires",
      async ({ a, b, pass }) => {
        const first = await a.acquire(candidate("one"), ttl_ms);
        assert.ok(first);
        await a.release(first, { node: "two", for_ms: ttl_ms });
        assert.equal(await a.acquire(candidate("three", first.term), ttl_ms), undefined);
        const second = await b.acquire(candidate("two", first.term), ttl_ms);
        assert.ok(second);
        await b.release(second, { node: "unknown", for_ms: ttl_ms });
        assert.equal(await a.holder(), undefined);
        assert.equal(await a.acquire(candidate("one", second.term), ttl_ms), undefined);
        await pass(ttl_ms);
        assert.ok(await a.acquire(candidate("one", second.term), ttl_ms));
      },
    );

    story("a node that was not complete in the last term cannot acquire the lease, unless forced", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      assert.ok(await a.renew(first, ttl_ms));
      await a.release(first);
      assert.equal(await b.acquire(candidate("two", first.term - 1), ttl_ms), undefined);
      assert.ok(await b.acquire(candidate("two", first.term - 1), ttl_ms, true));
      assert.equal(await a.acquire(candidate("one", first.term), ttl_ms, true), undefined);
    });

    story("only in-sync nodes can acquire the lease, unless forced", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first && (await a.renew(first, ttl_ms, { version: 1, nodes: ["one", "two"] })));
      assert.ok(await b.holder());
      await pass(ttl_ms);
      assert.equal(await b.holder(), undefined);
      assert.equal(await b.acquire(candidate("three", first.term), ttl_ms), undefined);
      const second = await b.acquire(candidate("two", first.term), ttl_ms);
      // Until the next primary stores its in-sync list, the previous one applies.
      assert.ok(second);
      await b.release(second);
      assert.equal(await a.acquire(candidate("three", first.term), ttl_ms), undefined);
      assert.ok(await a.acquire(candidate("three", first.term), ttl_ms, true));
    });

    story("a late list of in-sync nodes does not replace a newer one", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first && (await a.renew(first, ttl_ms, { version: 2, nodes: ["one"] })));
      assert.equal(await a.renew(first, ttl_ms, { version: 1, nodes: ["one", "two"] }), true);
      await a.release(first);
      assert.equal(await b.acquire(candidate("two", first.term), ttl_ms), undefined);
      const second = await b.acquire(candidate("one", first.term), ttl_ms);
      // The lists of another term are numbered anew, and without a list any node may be elected.
      assert.ok(second && (await b.renew(second, ttl_ms, { version: 0, nodes: ["one", "two"] })));
      await b.release(second);
      const third = await a.acquire(candidate("two", second.term), ttl_ms);
      assert.ok(third && (await a.renew(third, ttl_ms)));
      await a.release(third);
      assert.ok(await b.acquire(candidate("three", third.term), ttl_ms));
    });

    story("after a handover only the successor and the old primary are in sync", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first && (await a.renew(first, ttl_ms, { version: 1, nodes: ["one", "three"] })));
      await a.release(first, { node: "two", for_ms: ttl_ms });
      assert.equal(await b.holder(), undefined);
      await pass(ttl_ms);
      assert.equal(await b.acquire(candidate("three", first.term), ttl_ms), undefined);
      assert.ok(await b.acquire(candidate("two", first.term), ttl_ms));
    });

    story("a term without a primary does not restrict the next candidate", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      await a.release(first);
      const second = await b.acquire(candidate("two"), ttl_ms);
      assert.ok(second && second.term > first.term);
    });

    story("a restarted node acquires its own lease again", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      const again = await b.acquire(candidate("one", first.term), ttl_ms);
      assert.ok(again && again.term > first.term);
      assert.equal(await a.renew(first, ttl_ms), false);
    });

    story("a node that knows a higher term than the store gets one above it", async ({ a }) => {
      const lease = await a.acquire({ ...candidate("one"), term: 900_000 }, ttl_ms);
      assert.equal(lease?.term, 900_001);
    });

    story("releasing a lost lease does nothing", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first && (await b.holder()));
      await pass(ttl_ms);
      const second = await b.acquire(candidate("two", first.term), ttl_ms);
      await a.release(first);
      assert.deepEqual(await a.holder(), second);
    });

    story("of many concurrent candidates exactly one acquires the lease", async ({ a, b }) => {
      const names = Array.from({ length: 20 }, (_, i) => `node${i}`);
      const got = await Promise.all(names.map((node, i) => (i % 2 ? a : b).acquire(candidate(node), ttl_ms)));
      assert.equal(got.filter((lease) => lease !== undefined).length, 1);
    });
  });
}
