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

    story("one of two gets it, and both see who", async ({ a, b }) => {
      const lease = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(lease && lease.term > 0);
      assert.equal(await b.acquire(candidate("two"), ttl_ms), undefined);
      assert.deepEqual(await b.holder(), lease);
      assert.equal(lease.url, "http://one:20202");
    });

    story("it runs out, and the next has a higher term", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      // Whoever wants it looks all the time; some stores count from what each has seen itself.
      assert.ok(await b.holder());
      await pass(ttl_ms);
      assert.equal(await b.holder(), undefined);
      const second = await b.acquire(candidate("two", first.term), ttl_ms);
      assert.ok(second && second.term > first.term);
      assert.equal(await a.renew(first, ttl_ms), false);
      assert.deepEqual(await a.holder(), second);
    });

    story("renewing keeps it", async ({ a, b, pass }) => {
      const lease = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(lease);
      for (let i = 0; i < 3; i++) {
        await pass(ttl_ms / 3);
        assert.equal(await a.renew(lease, ttl_ms), true);
      }
      assert.equal(await b.acquire(candidate("two", lease.term), ttl_ms), undefined);
    });

    story("renewed several times at once, because an answer was late, it is kept", async ({ a, b }) => {
      const lease = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(lease);
      const renewed = await Promise.all(Array.from({ length: 5 }, () => a.renew(lease, ttl_ms)));
      assert.deepEqual(renewed, Array(5).fill(true));
      assert.deepEqual(await b.holder(), lease);
    });

    story("given back while it is being renewed, it is given back", async ({ a, b }) => {
      const lease = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(lease && (await a.renew(lease, ttl_ms)));
      await Promise.all([a.renew(lease, ttl_ms), a.release(lease), a.renew(lease, ttl_ms)]);
      assert.equal(await b.holder(), undefined);
    });

    story("given back, it can be taken at once", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      await a.release(first);
      assert.equal(await a.holder(), undefined);
      assert.ok(await b.acquire(candidate("two", first.term), ttl_ms));
    });

    story("given to a successor, nobody else gets it until its time is over", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      await a.release(first, { node: "two", for_ms: ttl_ms });
      assert.equal(await a.acquire(candidate("three", first.term), ttl_ms), undefined);
      const second = await b.acquire(candidate("two", first.term), ttl_ms);
      assert.ok(second);
      await b.release(second, { node: "nobody", for_ms: ttl_ms });
      assert.equal(await a.holder(), undefined);
      assert.equal(await a.acquire(candidate("one", second.term), ttl_ms), undefined);
      await pass(ttl_ms);
      assert.ok(await a.acquire(candidate("one", second.term), ttl_ms));
    });

    story("a node that was not complete in the last term is not chosen, unless forced", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      assert.ok(await a.renew(first, ttl_ms));
      await a.release(first);
      assert.equal(await b.acquire(candidate("two", first.term - 1), ttl_ms), undefined);
      assert.ok(await b.acquire(candidate("two", first.term - 1), ttl_ms, true));
      assert.equal(await a.acquire(candidate("one", first.term), ttl_ms, true), undefined);
    });

    story("only nodes that are in sync are chosen, unless forced", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first && (await a.renew(first, ttl_ms, { version: 1, nodes: ["one", "two"] })));
      assert.ok(await b.holder());
      await pass(ttl_ms);
      assert.equal(await b.holder(), undefined);
      assert.equal(await b.acquire(candidate("three", first.term), ttl_ms), undefined);
      const second = await b.acquire(candidate("two", first.term), ttl_ms);
      // Until the next primary has said who is in sync with it, those of the one before are.
      assert.ok(second);
      await b.release(second);
      assert.equal(await a.acquire(candidate("three", first.term), ttl_ms), undefined);
      assert.ok(await a.acquire(candidate("three", first.term), ttl_ms, true));
    });

    story("a list of nodes in sync that comes late does not replace a later one", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first && (await a.renew(first, ttl_ms, { version: 2, nodes: ["one"] })));
      assert.equal(await a.renew(first, ttl_ms, { version: 1, nodes: ["one", "two"] }), true);
      await a.release(first);
      assert.equal(await b.acquire(candidate("two", first.term), ttl_ms), undefined);
      const second = await b.acquire(candidate("one", first.term), ttl_ms);
      // The lists of another term are counted anew, and a primary that says nothing lets anybody stand.
      assert.ok(second && (await b.renew(second, ttl_ms, { version: 0, nodes: ["one", "two"] })));
      await b.release(second);
      const third = await a.acquire(candidate("two", second.term), ttl_ms);
      assert.ok(third && (await a.renew(third, ttl_ms)));
      await a.release(third);
      assert.ok(await b.acquire(candidate("three", third.term), ttl_ms));
    });

    story("a successor is in sync, and so is who named it; nobody else is", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first && (await a.renew(first, ttl_ms, { version: 1, nodes: ["one", "three"] })));
      await a.release(first, { node: "two", for_ms: ttl_ms });
      assert.equal(await b.holder(), undefined);
      await pass(ttl_ms);
      assert.equal(await b.acquire(candidate("three", first.term), ttl_ms), undefined);
      assert.ok(await b.acquire(candidate("two", first.term), ttl_ms));
    });

    story("a term that was given but never had a primary asks nothing of the next candidate", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      await a.release(first);
      const second = await b.acquire(candidate("two"), ttl_ms);
      assert.ok(second && second.term > first.term);
    });

    story("a node that comes back takes its own lease anew", async ({ a, b }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first);
      const again = await b.acquire(candidate("one", first.term), ttl_ms);
      assert.ok(again && again.term > first.term);
      assert.equal(await a.renew(first, ttl_ms), false);
    });

    story("a node that knows of a higher term than the store is given one above it", async ({ a }) => {
      const lease = await a.acquire({ ...candidate("one"), term: 900_000 }, ttl_ms);
      assert.equal(lease?.term, 900_001);
    });

    story("releasing what one no longer has does nothing", async ({ a, b, pass }) => {
      const first = await a.acquire(candidate("one"), ttl_ms);
      assert.ok(first && (await b.holder()));
      await pass(ttl_ms);
      const second = await b.acquire(candidate("two", first.term), ttl_ms);
      await a.release(first);
      assert.deepEqual(await a.holder(), second);
    });

    story("of many at once, one gets it", async ({ a, b }) => {
      const names = Array.from({ length: 20 }, (_, i) => `node${i}`);
      const got = await Promise.all(names.map((node, i) => (i % 2 ? a : b).acquire(candidate(node), ttl_ms)));
      assert.equal(got.filter((lease) => lease !== undefined).length, 1);
    });
  });
}
