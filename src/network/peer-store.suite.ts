import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { PeerStore } from "./overlay.ts";

/** What every PeerStore must do. `open` gives an empty one. */
export function peerStoreSuite(
  name: string,
  open: () => Promise<{ store: PeerStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`peer store: ${name}`, { skip }, () => {
    test("a peer is at the address it announced last, and expires when it stops announcing", async () => {
      const { store, close } = await open();
      await store.announce({ node_id: "a", underlay: "10.0.0.1", seen_at: 100 }, 0);
      await store.announce({ node_id: "b", underlay: "10.0.0.2", seen_at: 200 }, 0);
      await store.announce({ node_id: "a", underlay: "10.0.0.3", seen_at: 150 }, 0);
      assert.deepEqual(await store.peers(), [
        { node_id: "a", underlay: "10.0.0.3", seen_at: 150, block: null },
        { node_id: "b", underlay: "10.0.0.2", seen_at: 200, block: null },
      ]);
      await store.announce({ node_id: "b", underlay: "10.0.0.2", seen_at: 300 }, 151);
      assert.deepEqual(
        (await store.peers()).map(({ node_id }) => node_id),
        ["b"],
      );
      await close();
    });

    test("each process gets an IPv4 block of its own, and keeps it", async () => {
      const { store, close } = await open();
      const blocks = await Promise.all(["a", "b", "c"].map((node_id) => store.takeBlock(node_id, [1, 2, 3])));
      assert.equal(new Set(blocks).size, 3);
      assert.equal(await store.takeBlock("a", [1, 2, 3]), blocks[0]);
      assert.equal(await store.takeBlock("d", [1, 2, 3]), undefined, "there are no more");
      assert.equal(
        await store.takeBlock("c", [1, 2, 4]),
        blocks[2] === 3 ? 4 : blocks[2],
        "one that it may not have is given up",
      );
      await store.announce({ node_id: "b", underlay: "10.0.0.2", seen_at: 1 }, 0);
      assert.equal((await store.peers())[0]?.block, blocks[1]);
      await close();
    });
  });
}
