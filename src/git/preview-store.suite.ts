import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Preview, PreviewStore } from "./preview-store.ts";

const DAY = 24 * 60 * 60 * 1000;
const aPreview = (id: string, change: Partial<Preview> = {}): Preview => ({
  id,
  parent_id: "a1",
  org_id: "o1",
  branch: `branch-${id}`,
  app_name: `a1-${id}`,
  state: "open",
  git_commit: null,
  copied: [],
  created_by: "first start",
  created_at: 0,
  pushed_at: 0,
  settled_at: 100,
  ...change,
});
const MOST = { per_app: 10, per_org: 10 };

interface Opened {
  store: PreviewStore;
  putApp(id: string): Promise<void>;
  deleteApp(id: string): Promise<void>;
  putRelease(app_id: string, status: "complete" | "failed"): Promise<void>;
  putToken(id: string, expires_at: number): Promise<void>;
  hasToken(id: string): Promise<boolean>;
  close(): Promise<void>;
}

/** What every PreviewStore must do. `open` gives an empty one, in which organization o1 has the apps a1 and a2. */
export function previewStoreSuite(name: string, open: () => Promise<Opened>, skip?: string): void {
  suite(`preview store: ${name}`, { skip }, () => {
    test("settings are kept per app, and go with it", async () => {
      const { store, deleteApp, close } = await open();
      const settings = { enabled: true, days: 3, most: 2, secrets: ["A", "B"] };
      assert.equal(await store.settings("a1"), undefined);
      assert.equal(await store.putSettings("a1", { ...settings, days: 9 }), true);
      assert.equal(await store.putSettings("a1", settings), true);
      assert.deepEqual({ ...(await store.settings("a1")) }, settings);
      assert.equal(await store.putSettings("gone", settings), false);
      await deleteApp("a1");
      assert.equal(await store.settings("a1"), undefined);
      await close();
    });

    test("a branch has one preview; those of an app and of an organization are counted", async () => {
      const { store, close } = await open();
      const first = aPreview("p1", { copied: ["A"] });
      assert.equal(await store.insert(first, MOST), undefined);
      assert.deepEqual(await store.find("a1", "branch-p1"), first);
      assert.deepEqual(await store.named("a1", "a1-p1"), first);
      assert.deepEqual(await store.byId("p1"), first);
      assert.equal(await store.named("a2", "a1-p1"), undefined);
      assert.equal(await store.insert({ ...aPreview("p2"), branch: "branch-p1" }, MOST), "exists");
      assert.equal(await store.insert(aPreview("p2"), { per_app: 1, per_org: 10 }), "app_limit");
      assert.equal(await store.insert(aPreview("p2", { parent_id: "a2" }), { per_app: 9, per_org: 1 }), "org_limit");
      assert.equal(await store.insert(aPreview("p2", { parent_id: "gone" }), MOST), "no_app");
      assert.equal(await store.insert(aPreview("p0"), MOST), undefined);
      assert.deepEqual(
        (await store.list("a1", { limit: 9 })).map(({ id }) => id),
        ["p0", "p1"],
      );
      assert.deepEqual(
        (await store.list("a1", { after: ["branch-p0"], limit: 9 })).map(({ id }) => id),
        ["p1"],
      );
      await store.change("p1", { git_commit: "c", copied: ["B"], pushed_at: 7, settled_at: 8 });
      assert.deepEqual(await store.byId("p1"), {
        ...first,
        git_commit: "c",
        copied: ["B"],
        pushed_at: 7,
        settled_at: 8,
      });
      await close();
    });

    test("those to remove are due: past their days, without an app or a release, or begun to be deleted", async () => {
      const { store, putApp, deleteApp, putRelease, close } = await open();
      const due = async (now: number): Promise<string[]> => (await store.due(now, 10)).map(({ id }) => id);
      for (const id of ["p1", "p2", "p3"]) {
        await store.insert(aPreview(id, { parent_id: id === "p3" ? "a2" : "a1" }), MOST);
        await putApp(id);
        await putRelease(id, id === "p2" ? "failed" : "complete");
      }
      assert.deepEqual([await store.isDeployed("p1"), await store.isDeployed("p2")], [true, false]);
      assert.deepEqual([await store.deployed("a1"), await store.deployed("a2")], [new Set(["p1"]), new Set(["p3"])]);
      assert.deepEqual(await due(99), []);
      assert.deepEqual(await due(100), ["p2"], "its first deploy failed");
      assert.deepEqual(await due(7 * DAY), ["p1", "p2", "p3"]);
      await store.putSettings("a1", { enabled: true, days: 9, most: 2, secrets: [] });
      assert.deepEqual(await due(7 * DAY), ["p2", "p3"]);
      await deleteApp("p1");
      assert.deepEqual(await due(99), []);
      assert.deepEqual(await due(100), ["p1", "p2"]);
      await deleteApp("a2");
      assert.deepEqual(await due(0), ["p3"]);
      assert.equal(await store.putDeleting("p2"), true);
      assert.equal(await store.putDeleting("gone"), false);
      assert.deepEqual(await due(0), ["p2", "p3"]);
      assert.equal((await store.due(0, 1)).length, 1);
      await close();
    });

    test("only one that is being deleted is removed, and its tokens with it", async () => {
      const { store, putToken, hasToken, close } = await open();
      for (const [id, expires_at] of [
        ["t1", 10],
        ["t2", 50],
        ["t3", 50],
        ["other", 5],
      ] as const)
        await putToken(id, expires_at);
      await store.insert(aPreview("p1"), MOST);
      await store.addToken("p1", "t1", 0);
      await store.addToken("p1", "t2", 9);
      assert.equal(await hasToken("t1"), true);
      await store.addToken("p1", "t3", 10);
      assert.equal(await hasToken("t1"), false, "it has expired");
      await store.putDeleting("p1");
      await store.remove("p1");
      assert.equal(await store.byId("p1"), undefined);
      assert.deepEqual(await Promise.all(["t2", "t3", "other"].map(hasToken)), [false, false, true]);
      await store.remove("p1");
      await close();
    });
  });
}
