import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { ProxyStore, StoredCertificate } from "./store.ts";

const one: StoredCertificate = {
  hostname: "www.example.com",
  app_id: "a1",
  org_id: "o1",
  kind: "custom",
  state: "ready",
  chain: "chain",
  key: Uint8Array.of(1, 2),
  problem: null,
  created_at: 5,
  updated_at: 5,
  expires_at: 99,
  proved_at: null,
};

const plain = (list: readonly StoredCertificate[]): object[] => list.map((c) => ({ ...c, key: c.key && [...c.key] }));

/** What every ProxyStore must do. `open` gives an empty one with the apps a1 and a2. */
export function proxyStoreSuite(
  name: string,
  open: () => Promise<{ store: ProxyStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`proxy store: ${name}`, { skip }, () => {
    test("one runner at a time has the orders of a name, until it releases them or its claim expires", async () => {
      const { store, close } = await open();
      const claim = (runner: string, now: number) => store.claimOrder("example.com", { runner, now, until: now + 10 });
      const first = await Promise.all(["a", "b", "c"].map((runner) => claim(runner, 100)));
      assert.equal(first.filter(Boolean).length, 1, "of many at once one");
      const [winner = ""] = ["a", "b", "c"].filter((_, index) => first[index]);
      assert.equal(await claim("d", 109), false);
      assert.equal(await claim(winner, 105), true);
      await store.releaseOrder("example.com", "d");
      assert.equal(await claim("d", 110), false, "only its own runner releases a claim");
      assert.equal(await claim("d", 115), true, "an expired claim can be taken over");
      await store.releaseOrder("example.com", "d");
      assert.equal(await claim("e", 116), true);
      await close();
    });

    test("a name has one certificate in each app that claims it", async () => {
      const { store, close } = await open();
      assert.equal(await store.insertCertificate(one, 2), "inserted");
      assert.equal(await store.insertCertificate(one, 2), "taken");
      assert.equal(await store.insertCertificate({ ...one, app_id: "nobody", hostname: "x" }, 2), "no_app");
      const pending: StoredCertificate = {
        ...one,
        hostname: "b.example.com",
        kind: "acme",
        state: "pending",
        chain: null,
      };
      assert.equal(await store.insertCertificate({ ...pending, key: null, expires_at: null }, 2), "inserted");
      assert.equal(await store.insertCertificate({ ...one, hostname: "c.example.com" }, 2), "limit");
      assert.equal(await store.putCertificate({ ...pending, state: "failed", problem: "no answer", key: null }), true);
      assert.deepEqual(
        plain(await store.certificates("a1")),
        plain([{ ...pending, state: "failed", problem: "no answer", key: null }, one]),
      );
      assert.equal((await store.certificates()).length, 2);
      assert.equal(await store.deleteCertificate("a2", one.hostname), false);
      assert.equal(await store.deleteCertificate("a1", one.hostname), true);
      assert.equal(await store.putCertificate(one), false);
      await close();
    });

    test("many apps may claim a host name, only one can verify it", async () => {
      const { store, close } = await open();
      const other = { ...one, app_id: "a2" };
      assert.equal(await store.proveHostname("a1", one.hostname, 7), false, "it is not claimed");
      // An insert does not write the proof.
      assert.equal(await store.insertCertificate({ ...one, proved_at: 3 }, 2), "inserted");
      assert.equal(await store.insertCertificate(other, 2), "inserted");
      assert.deepEqual(plain(await store.certificates()), plain([one, other]));
      const outcomes = await Promise.all(["a1", "a2"].map((app_id) => store.proveHostname(app_id, one.hostname, 7)));
      assert.equal(outcomes.filter(Boolean).length, 1, "of two at the same moment one");
      const holder = outcomes[0] ? "a1" : "a2";
      const loser = outcomes[0] ? "a2" : "a1";
      assert.equal(await store.proveHostname(holder, one.hostname, 9), true);
      assert.equal(await store.proveHostname(loser, one.hostname, 9), false);
      const proofs = (await store.certificates()).map(({ app_id, proved_at }) => [app_id, proved_at]);
      assert.deepEqual(Object.fromEntries(proofs), { [holder]: 7, [loser]: null });
      assert.equal(await store.deleteCertificate(loser, one.hostname), true);
      assert.equal(await store.insertCertificate({ ...one, app_id: loser }, 2), "taken", "by the app that proved it");
      assert.equal(await store.deleteCertificate(holder, one.hostname), true);
      assert.equal(await store.insertCertificate({ ...one, app_id: loser }, 2), "inserted");
      await close();
    });

    test("a proxy's state replaces its older one, and expires without a heartbeat", async () => {
      const { store, close } = await open();
      const state = { uses: { m1: 2 }, resting: { m2: "a1" }, quiet: ["m3"] };
      await store.putPeerState({ node_id: "n1", word: state, seen_at: 5 }, 0);
      await store.putPeerState({ node_id: "n2", word: state, seen_at: 9 }, 0);
      const newer = { ...state, uses: {} };
      await store.putPeerState({ node_id: "n2", word: newer, seen_at: 9 }, 6);
      assert.deepEqual(await store.peers(), [{ node_id: "n2", beat: 2, word: newer }]);
      await store.forgetPeer("n2");
      assert.deepEqual(await store.peers(), []);
      await close();
    });

    test("ACME accounts and challenges are stored and replaced", async () => {
      const { store, close } = await open();
      assert.equal(await store.account("https://ca/"), undefined);
      await store.putAccount({ directory: "https://ca/", key: Uint8Array.of(1), url: "u1" });
      await store.putAccount({ directory: "https://ca/", key: Uint8Array.of(2), url: "u2" });
      assert.equal((await store.account("https://ca/"))?.url, "u2");
      assert.equal(await store.value("colour"), undefined);
      await store.putValue("colour", "blue");
      await store.putValue("colour", "green");
      assert.equal(await store.value("colour"), "green");
      await close();
    });
  });
}
