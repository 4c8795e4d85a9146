import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type NetworkStore, PrivateNetworks, prefixFromOrg } from "./private-networks.ts";

interface Opened {
  store: NetworkStore;
  /** A network as written by a version that stored no prefixes. */
  addOld(org_id: string, name: string): Promise<void>;
  close(): Promise<void>;
}

/** What every NetworkStore must do. `open` gives an empty one in which organizations o1 and o2 exist. */
export function networkStoreSuite(name: string, open: () => Promise<Opened>, skip?: string): void {
  suite(`network store: ${name}`, { skip }, () => {
    test("a network keeps its prefix, and no two networks share one", async () => {
      const { store, close } = await open();
      await store.keepPrefix("o1", "default", "00000001");
      await store.keepPrefix("o1", "default", "00000002");
      await store.keepPrefix("o2", "default", "00000001");
      assert.equal((await store.findNetwork("o1", "default"))?.prefix, "00000001");
      assert.equal(await store.findNetwork("o2", "default"), undefined);
      await close();
    });

    test("prefixes are derived from the secret, and concurrent callers get the same one", async () => {
      const { store, close } = await open();
      const networks = new PrivateNetworks(store, Buffer.from("secret"));
      const prefixes = await Promise.all(Array.from({ length: 8 }, () => networks.prefix("o1", "default")));
      assert.equal(new Set(prefixes).size, 1);
      assert.match(prefixes[0] ?? "", /^[0-9a-f]{8}$/);
      assert.notEqual(prefixes[0], prefixFromOrg("o1", "default"));
      assert.notEqual(await networks.prefix("o1", "other"), prefixes[0]);
      assert.equal(await new PrivateNetworks(store, Buffer.from("another")).prefix("o1", "default"), prefixes[0]);
      await close();
    });

    test("a network from an older version keeps its prefix, and no other network gets it", async () => {
      const { store, addOld, close } = await open();
      await addOld("o1", "default");
      const networks = new PrivateNetworks(store, Buffer.from("secret"));
      assert.equal(await networks.prefix("o1", "default"), prefixFromOrg("o1", "default"));
      await networks.prefix("o2", "default");
      assert.deepEqual(await store.unkept(), []);
      await store.keepPrefix("o2", "third", prefixFromOrg("o1", "default"));
      assert.equal(await store.findNetwork("o2", "third"), undefined);
      assert.equal(await networks.prefix("o1", "default"), prefixFromOrg("o1", "default"));
      await close();
    });
  });
}
