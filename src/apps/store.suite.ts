import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { anApp, aSecret } from "./fixtures.ts";
import type { AppPage, AppStore } from "./store.ts";

/** What every AppStore must do. `open` gives an empty one in which organizations o1 and o2 exist. */
export function appStoreSuite(
  name: string,
  open: () => Promise<{ store: AppStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`app store: ${name}`, { skip }, () => {
    async function withStore(work: (store: AppStore) => Promise<void>): Promise<void> {
      const { store, close } = await open();
      try {
        await work(store);
      } finally {
        await close();
      }
    }

    test("an app's egress policy is `all` until another is stored", () =>
      withStore(async (store) => {
        await store.insertApp(anApp({ id: "a1", name: "web", org_id: "o1" }), 10);
        assert.deepEqual(await store.egress("a1"), { mode: "all", allow: [] });
        assert.equal(await store.putEgress("a1", { mode: "list", allow: ["api.example.com:443"] }), true);
        assert.deepEqual(await store.egress("a1"), { mode: "list", allow: ["api.example.com:443"] });
        assert.equal(await store.putEgress("gone", { mode: "none", allow: [] }), false);
      }));

    test("an app name is unique across organizations, and a repeated insert changes nothing", () =>
      withStore(async (store) => {
        const app = anApp({ id: "a1", name: "web", org_id: "o1" });
        assert.equal(await store.insertApp(app, 10), "inserted");
        assert.equal(await store.insertApp(app, 10), "inserted");
        assert.equal(await store.insertApp({ ...app, id: "a2", org_id: "o2" }, 10), "name_taken");
        assert.equal(await store.insertApp(anApp({ id: "a3", name: "api", org_id: "gone" }), 10), "no_org");
        assert.deepEqual({ ...(await store.findApp("web")) }, app);
      }));

    test("the app limit of an organization holds under concurrent inserts", () =>
      withStore(async (store) => {
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            store.insertApp(anApp({ id: `a${i}`, name: `app-${i}`, org_id: "o1" }), 5),
          ),
        );
        assert.equal(results.filter((result) => result === "inserted").length, 5);
        assert.equal((await store.apps("o1")).length, 5);
        assert.equal((await store.apps("o2")).length, 0);
      }));

    test("apps are listed by name, whole or in pages", () =>
      withStore(async (store) => {
        for (const name of ["c", "a", "d", "b"]) await store.insertApp(anApp({ id: name, name, org_id: "o1" }), 10);
        const names = async (page?: AppPage): Promise<string> =>
          (await store.apps("o1", page)).map((app) => app.name).join("");
        assert.equal(await names(), "abcd");
        assert.equal(await names({ limit: 2 }), "ab");
        assert.equal(await names({ after: ["b"], limit: 9 }), "cd");
        assert.equal(await names({ after: ["bb"], limit: 1 }), "c");
        assert.deepEqual([await store.countApps("o1"), await store.countApps("o2")], [4, 0]);
      }));

    test("secrets are put and removed together, each change is a new version, and they go with the app", () =>
      withStore(async (store) => {
        await store.insertApp(anApp({ id: "a1", name: "web", org_id: "o1" }), 10);
        assert.equal(await store.changeSecrets("a1", [aSecret({ name: "A" }), aSecret({ name: "B" })], [], 10), 1);
        const later = aSecret({ name: "A", created_at: 5, updated_at: 9, digest: "new" });
        assert.equal(await store.changeSecrets("a1", [later], ["B", "NEVER"], 10), 2);
        const [secret, ...rest] = await store.secrets("a1");
        assert.deepEqual(rest, []);
        assert.equal(secret?.digest, "new");
        assert.equal(secret?.created_at, aSecret().created_at);
        assert.equal(secret?.updated_at, 9);
        assert.ok(await store.findSecret("a1", "A"));
        assert.ok(await store.deleteApp("a1"));
        assert.equal(await store.findSecret("a1", "A"), undefined);
        assert.equal(await store.changeSecrets("a1", [aSecret()], [], 10), "no_app");
        assert.equal(await store.deleteApp("a1"), false);
      }));

    test("a change that exceeds the limit of secrets stores nothing", () =>
      withStore(async (store) => {
        await store.insertApp(anApp({ id: "a1", name: "web", org_id: "o1" }), 10);
        await store.changeSecrets("a1", [aSecret({ name: "A" })], [], 2);
        assert.equal(await store.changeSecrets("a1", [aSecret({ name: "B" }), aSecret({ name: "C" })], [], 2), "limit");
        assert.deepEqual(
          (await store.secrets("a1")).map((secret) => secret.name),
          ["A"],
        );
        assert.equal((await store.findApp("web"))?.secrets_version, 1);
      }));
  });
}
