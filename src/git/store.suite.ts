import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { GitStore } from "./store.ts";

/** What every GitStore must do. `open` gives an empty one with the app a1. */
export function gitStoreSuite(
  name: string,
  open: () => Promise<{ store: GitStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`git store: ${name}`, { skip }, () => {
    test("settings are kept per app, and none for an app that does not exist", async () => {
      const { store, close } = await open();
      assert.equal(await store.settings("a1"), undefined);
      assert.equal(await store.putSettings("a1", { deploy_branch: "live" }), true);
      assert.equal(await store.putSettings("a1", { deploy_branch: "release/1" }), true);
      assert.deepEqual({ ...(await store.settings("a1")) }, { deploy_branch: "release/1" });
      assert.equal(await store.putSettings("gone", { deploy_branch: "live" }), false);
      assert.equal(await store.settings("gone"), undefined);
      assert.deepEqual([await store.hasApp("a1"), await store.hasApp("gone")], [true, false]);
      assert.deepEqual({ ...(await store.app("a1")) }, { id: "a1", name: "a1", org_id: "o1" });
      assert.equal(await store.app("gone"), undefined);
      await close();
    });
  });
}
