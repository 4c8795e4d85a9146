import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { SpriteStore } from "./store.ts";
import type { Sprite } from "./types.ts";

const aSprite = (id: string, change: Partial<Sprite> = {}): Sprite => ({
  id,
  org_id: "o1",
  app_id: "a1",
  name: `name-${id}`,
  machine_id: `machine-${id}`,
  state: "creating",
  settings: { image: "i:1", cpus: 1, memory_mb: 256, storage_gb: 2, region: null, environment: { A: "1" } },
  first_labels: ["prod", "web"],
  url_auth: "sprite",
  private_access: null,
  created_at: 5,
  updated_at: 5,
  ...change,
});

interface Opened {
  store: SpriteStore;
  /** A machine of app a1, started. */
  putMachine(id: string): Promise<void>;
  deleteApp(id: string): Promise<void>;
  close(): Promise<void>;
}

/** What every SpriteStore must do. `open` gives an empty one, in which organization o1 has the apps a1 and a2. */
export function spriteStoreSuite(name: string, open: () => Promise<Opened>, skip?: string): void {
  const within = async (work: (opened: Opened) => Promise<void>): Promise<void> => {
    const opened = await open();
    try {
      await work(opened);
    } finally {
      await opened.close();
    }
  };
  suite(`sprite store: ${name}`, { skip }, () => {
    test("an organization's app is recorded once, and again after it was deleted", () =>
      within(async ({ store, deleteApp }) => {
        assert.equal(await store.app("o1"), undefined);
        await store.putApp("o1", "a1");
        await store.putApp("o1", "a2");
        assert.equal((await store.app("o1"))?.app_id, "a1");
        assert.deepEqual(
          (await store.orgs()).map(({ id }) => id),
          ["o1"],
        );
        await deleteApp("a1");
        assert.equal(await store.app("o1"), undefined);
        await store.putApp("o1", "a2");
        assert.equal((await store.app("o1"))?.app_name, "a2");
      }));

    test("names are unique, ids repeatable, and the limit holds", () =>
      within(async ({ store }) => {
        assert.equal(await store.insert(aSprite("s1"), 2), "inserted");
        assert.equal(await store.insert(aSprite("s1"), 2), "exists");
        assert.equal((await store.findByMachine("o1", "machine-s1"))?.id, "s1");
        assert.equal(await store.findByMachine("o2", "machine-s1"), undefined);
        assert.equal(await store.insert(aSprite("s2", { name: "name-s1" }), 2), "name_taken");
        assert.equal(await store.insert(aSprite("s3", { app_id: "gone" }), 2), "no_app");
        assert.equal(await store.insert(aSprite("s2"), 2), "inserted");
        assert.equal(await store.insert(aSprite("s3"), 2), "limit");
        assert.equal(await store.count("o1"), 2);
      }));

    test("a sprite is shown with its machine's state, and lists go by name and prefix", () =>
      within(async ({ store, putMachine }) => {
        for (const id of ["b", "a2", "a1"]) await store.insert(aSprite(id, { name: id }), 9);
        const found = await store.find("o1", "a1");
        assert.deepEqual(
          { ...found },
          {
            ...aSprite("a1", { name: "a1" }),
            app_name: "a1",
            machine_state: null,
            started_at: null,
            machine_updated_at: null,
            labels: ["prod", "web"],
          },
        );
        assert.equal(await store.find("o2", "a1"), undefined);
        await putMachine("machine-a1");
        assert.equal((await store.find("o1", "a1"))?.machine_state, "started");
        assert.deepEqual((await store.find("o1", "a1"))?.labels, [], "those of the machine count");
        const names = async (prefix: string, after: string, limit: number) =>
          (await store.list("o1", { prefix, after, limit })).map((sprite) => sprite.name);
        assert.deepEqual(await names("", "", 2), ["a1", "a2"]);
        assert.deepEqual(await names("", "a2", 2), ["b"]);
        assert.deepEqual(await names("a", "", 9), ["a1", "a2"]);
        assert.deepEqual(await names("%", "", 9), []);
        const states = (await store.states("o1")).map(({ state, sprites }) => `${state} ${sprites}`);
        assert.deepEqual(states.sort(), ["null 2", "started 1"]);
      }));

    test("a sprite is created, changed and deleted in this order; what is left half done is found", () =>
      within(async ({ store, putMachine }) => {
        await store.insert(aSprite("s1"), 9);
        const unfinished = async (before: number) => (await store.unfinished(before, 9)).map(({ id }) => id);
        assert.deepEqual([await unfinished(4), await unfinished(5)], [[], ["s1"]]);
        await putMachine("machine-s1");
        assert.deepEqual([await store.putReady("s1"), await store.putReady("s1")], [true, false]);
        assert.deepEqual(await unfinished(9), []);
        assert.deepEqual(
          (await store.inState("started", { after: "", limit: 9 })).map(({ id }) => id),
          ["s1"],
        );
        assert.deepEqual(await store.inState("started", { after: "s1", limit: 9 }), []);
        assert.equal(await store.change("s1", { url_auth: "public", private_access: "admins" }, 7), true);
        const { url_auth, private_access, updated_at } = (await store.find("o1", "name-s1")) ?? aSprite("none");
        assert.deepEqual([url_auth, private_access, updated_at], ["public", "admins", 7]);
        await store.remove("s1");
        assert.equal(await store.count("o1"), 1, "only what is being deleted is removed");
        assert.equal(await store.putDeleting("s1"), true);
        assert.equal(await store.change("s1", { url_auth: "sprite" }, 8), false);
        assert.deepEqual(await unfinished(9), ["s1"]);
        assert.deepEqual(await store.list("o1", { prefix: "", after: "", limit: 9 }), []);
        await store.remove("s1");
        assert.equal(await store.putDeleting("s1"), false);
      }));

    test("a sprite whose machine is not there any more is found", () =>
      within(async ({ store }) => {
        await store.insert(aSprite("s1"), 9);
        await store.putReady("s1");
        assert.deepEqual(
          (await store.unfinished(0, 9)).map(({ id }) => id),
          ["s1"],
        );
      }));
  });
}
