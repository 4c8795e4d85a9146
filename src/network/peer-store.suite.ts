import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { PeerStore } from "./fabric.ts";

/** What every PeerStore must do. `open` gives an empty one. */
export function peerStoreSuite(
  name: string,
  open: () => Promise<{ store: PeerStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`peer store: ${name}`, { skip }, () => {
    test("a peer is where it said last, and is forgotten when it says nothing any more", async () => {
      const { store, close } = await open();
      await store.announce({ node_id: "a", underlay: "10.0.0.1", seen_at: 100 }, 0);
      await store.announce({ node_id: "b", underlay: "10.0.0.2", seen_at: 200 }, 0);
      await store.announce({ node_id: "a", underlay: "10.0.0.3", seen_at: 150 }, 0);
      assert.deepEqual(await store.peers(), [
        { node_id: "a", underlay: "10.0.0.3", seen_at: 150 },
        { node_id: "b", underlay: "10.0.0.2", seen_at: 200 },
      ]);
      await store.announce({ node_id: "b", underlay: "10.0.0.2", seen_at: 300 }, 151);
      assert.deepEqual(
        (await store.peers()).map(({ node_id }) => node_id),
        ["b"],
      );
      await close();
    });
  });
}
