import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { anOrg, aToken } from "./fixtures.ts";
import type { AuthStore } from "./store.ts";

/** What every AuthStore must do. `open` gives an empty one. */
export function authStoreSuite(
  name: string,
  open: () => Promise<{ store: AuthStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`auth store: ${name}`, { skip }, () => {
    async function withStore(work: (store: AuthStore) => Promise<void>): Promise<void> {
      const { store, close } = await open();
      try {
        await work(store);
      } finally {
        await close();
      }
    }

    test("organizations are found by slug and id, and listed by slug", () =>
      withStore(async (store) => {
        assert.equal(await store.insertOrg(anOrg({ id: "o2", slug: "zoo" }), 10), "inserted");
        assert.equal(await store.insertOrg(anOrg({ id: "o1", slug: "acme" }), 10), "inserted");
        assert.equal((await store.findOrg("acme"))?.id, "o1");
        assert.equal((await store.findOrgById("o2"))?.slug, "zoo");
        assert.deepEqual(
          (await store.orgs()).map((org) => org.slug),
          ["acme", "zoo"],
        );
        assert.equal(await store.findOrg("nowhere"), undefined);
      }));

    test("a slug is unique, a repeated insert changes nothing, and the limit of organizations holds", () =>
      withStore(async (store) => {
        const org = anOrg({ id: "o1", slug: "acme" });
        assert.equal(await store.insertOrg(org, 1), "inserted");
        assert.equal(await store.insertOrg(org, 1), "inserted");
        assert.equal(await store.insertOrg({ ...org, id: "o2" }, 5), "slug_taken");
        assert.equal(await store.insertOrg(anOrg({ id: "o3", slug: "other" }), 1), "limit");
        assert.equal((await store.orgs()).length, 1);
      }));

    test("tokens are deleted with their organization; full-access tokens belong to none", () =>
      withStore(async (store) => {
        await store.insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
        assert.deepEqual(
          await store.insertToken(aToken({ id: "t1", org_id: "o1" }), 2),
          aToken({ id: "t1", org_id: "o1" }),
        );
        assert.deepEqual(
          await store.insertToken(aToken({ id: "t2", org_id: "o1" }), 2),
          aToken({ id: "t2", org_id: "o1" }),
        );
        assert.deepEqual(
          await store.insertToken(aToken({ id: "t3", org_id: null, kind: "full" }), 2),
          aToken({ id: "t3", org_id: null, kind: "full" }),
        );
        assert.deepEqual(
          (await store.tokens("o1")).map((token) => token.id),
          ["t2", "t1"],
        );
        assert.deepEqual(
          (await store.tokens(null)).map((token) => token.id),
          ["t3"],
        );
        const [older] = await store.tokens("o1", { after: ["t2"], limit: 9 });
        assert.deepEqual([older?.id, (await store.tokens("o1", { limit: 1 })).length], ["t1", 1]);
        assert.ok(await store.deleteOrg("o1"));
        assert.equal(await store.findToken("t1"), undefined);
        assert.equal(await store.insertToken(aToken({ id: "t4", org_id: "o1" }), 2), "no_org");
        assert.equal(await store.deleteOrg("o1"), false);
      }));

    test("the token limit of an organization holds under concurrent inserts", () =>
      withStore(async (store) => {
        await store.insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
        const wanted = Array.from({ length: 9 }, (_, i) => aToken({ id: `t${i}`, org_id: "o1" }));
        const results = await Promise.all(wanted.map((token) => store.insertToken(token, 4)));
        assert.equal(results.filter((result) => typeof result === "object").length, 4);
        assert.equal(results.filter((result) => result === "limit").length, 5);
        const [kept] = await store.tokens("o1");
        assert.ok(kept);
        const later = await store.insertToken({ ...kept, expires_at: 99, name: "another" }, 4);
        assert.deepEqual({ ...(later as object) }, { ...kept });
        assert.equal((await store.tokens("o1")).length, 4);
      }));

    test("revoked and expired tokens leave their place to others, and are deleted later", () =>
      withStore(async (store) => {
        await store.insertOrg(anOrg({ id: "o1", slug: "acme" }), 10);
        const token = (id: string, created_at: number) =>
          aToken({ id, org_id: "o1", created_at, expires_at: created_at + 100 });
        const isKept = async (id: string, at: number) =>
          typeof (await store.insertToken(token(id, at), 2)) === "object";
        assert.deepEqual([await isKept("t1", 0), await isKept("t2", 50), await isKept("t3", 60)], [true, true, false]);
        await store.revokeToken("t2", 70);
        assert.deepEqual([await isKept("t3", 80), await isKept("t4", 90)], [true, false]);
        // The first has expired.
        assert.ok(await isKept("t4", 100));
        for (const [i, id] of ["t5", "t6", "t7", "t8"].entries()) assert.ok(await isKept(id, 200 * (i + 1)), id);
        assert.equal(await isKept("t9", 2000), false, "rows are bounded too");
        await store.deleteEnded(100);
        assert.deepEqual(
          (await store.tokens("o1")).map(({ id }) => id),
          ["t8", "t7", "t6", "t5", "t4", "t3", "t1"],
        );
        await store.deleteEnded(200);
        assert.deepEqual(
          (await store.tokens("o1")).map(({ id }) => id),
          ["t8", "t7", "t6", "t5", "t4"],
        );
        assert.ok(await isKept("t9", 2000));
      }));

    test("a token keeps its secret to the byte, and the time of its first revocation", () =>
      withStore(async (store) => {
        const token = aToken({ id: "t1", org_id: null, secret: Uint8Array.of(0, 255, 1) });
        await store.insertToken(token, 1);
        assert.deepEqual(Buffer.from((await store.findToken("t1"))?.secret ?? []), Buffer.of(0, 255, 1));
        assert.ok(await store.revokeToken("t1", 1000));
        assert.ok(await store.revokeToken("t1", 2000));
        assert.equal((await store.findToken("t1"))?.revoked_at, 1000);
        assert.equal(await store.revokeToken("missing", 1), false);
      }));
  });
}
