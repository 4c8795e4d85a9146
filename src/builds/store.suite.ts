import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { BuildStore } from "./store.ts";
import type { Build } from "./types.ts";

const BUILD: Build = {
  id: "00000000000001",
  app_id: "a1",
  org_id: "o1",
  state: "queued",
  node_id: "n1",
  cancel_requested: false,
  dockerfile: "Dockerfile",
  target: null,
  no_cache: true,
  files: 2,
  bytes: 9,
  image: "builds/web:latest",
  digest: null,
  step: null,
  error: null,
  created_by: "full-access token",
  created_at: 5,
  started_at: null,
  ended_at: null,
};
const BOUNDS = { keep: 10, open: 10 };
const build = (number: number, more: Partial<Build> = {}): Build => ({
  ...BUILD,
  id: String(number).padStart(14, "0"),
  created_at: number,
  ...more,
});

/** What every BuildStore must do. `open` gives an empty one in which organization o1 has the app a1. */
export function buildStoreSuite(
  name: string,
  open: () => Promise<{ store: BuildStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`build store: ${name}`, { skip }, () => {
    test("a build is found as it was kept, by its app alone, the newest first", async () => {
      const { store, close } = await open();
      for (const number of [1, 2, 3]) assert.equal(await store.insert(build(number), BOUNDS), undefined);
      assert.deepEqual(await store.find("a1", build(2).id), build(2));
      assert.equal(await store.find("a2", build(2).id), undefined);
      const ids = async (page: Parameters<BuildStore["list"]>[1]) => (await store.list("a1", page)).map(({ id }) => id);
      assert.deepEqual(await ids({ limit: 2 }), [build(3).id, build(2).id]);
      assert.deepEqual(await ids({ after: [2, build(2).id], limit: 2 }), [build(1).id]);
      assert.equal(await store.insert(build(4, { app_id: "gone" }), BOUNDS), "app is gone");
      await close();
    });

    test("an organization's builds are listed with the names of their apps, by state and in pages", async () => {
      const { store, close } = await open();
      for (const number of [1, 2, 3]) await store.insert(build(number), BOUNDS);
      await store.change(build(2).id, ["queued"], { state: "running", step: "1/2 FROM scratch" });
      const named = (one: Build) => ({ ...one, app_name: "a1" });
      assert.deepEqual(await store.listOfOrg("o1", ["running"], { limit: 9 }), [
        named(build(2, { state: "running", step: "1/2 FROM scratch" })),
      ]);
      const all = async (page: Parameters<BuildStore["list"]>[1]) =>
        (await store.listOfOrg("o1", [], page)).map(({ id }) => id);
      assert.deepEqual(await all({ limit: 2 }), [build(3).id, build(2).id]);
      assert.deepEqual(await all({ after: [2, build(2).id], limit: 2 }), [build(1).id]);
      assert.deepEqual(await store.listOfOrg("o2", [], { limit: 9 }), []);
      await close();
    });

    test("an app's newest build is listed as failed until another one begins", async () => {
      const { store, close } = await open();
      const failed = async (since = 0) => (await store.failedLast("o1", since, 9)).map(({ id }) => id);
      for (const number of [1, 2, 3]) await store.insert(build(number), BOUNDS);
      for (const number of [1, 2]) await store.change(build(number).id, ["queued"], { state: "failed" });
      assert.deepEqual(await failed(), [], "a newer one is queued");
      await store.change(build(3).id, ["queued"], { state: "cancelled" });
      assert.deepEqual(await failed(), [build(2).id]);
      assert.deepEqual(await failed(2), [], "too long ago");
      await store.insert(build(4), BOUNDS);
      assert.deepEqual(await failed(), []);
      await close();
    });

    test("only a build in one of the states is changed", async () => {
      const { store, close } = await open();
      await store.insert(build(1), BOUNDS);
      assert.equal(await store.change(build(1).id, ["running"], { state: "complete" }), false);
      assert.equal(await store.change(build(1).id, ["queued"], { state: "running", started_at: 7 }), true);
      const ended = { state: "failed", error: "why", digest: "sha256:1", ended_at: 9 } as const;
      assert.equal(await store.change(build(1).id, ["queued", "running"], ended), true);
      assert.deepEqual(await store.find("a1", build(1).id), build(1, { ...ended, started_at: 7 }));
      await close();
    });

    test("a cancel is requested for a running build only", async () => {
      const { store, close } = await open();
      await store.insert(build(1), BOUNDS);
      assert.equal(await store.requestCancel(build(1).id), false, "it waits");
      await store.change(build(1).id, ["queued"], { state: "running" });
      assert.equal(await store.requestCancel(build(1).id), true);
      assert.deepEqual(await store.unfinished("n1"), [build(1, { state: "running", cancel_requested: true })]);
      await store.change(build(1).id, ["running"], { state: "cancelled" });
      assert.equal(await store.requestCancel(build(1).id), false, "it has ended");
      await close();
    });

    test("old ended builds are deleted with their logs; unfinished builds of a process are listed", async () => {
      const { store, close } = await open();
      await store.insert(build(1), BOUNDS);
      await store.insert(build(2), BOUNDS);
      await store.appendLog(build(1).id, { seq: 1, text: "old" });
      await store.change(build(1).id, ["queued"], { state: "complete" });
      await store.insert(build(3, { node_id: "n2" }), { ...BOUNDS, keep: 2 });
      assert.equal(await store.find("a1", build(1).id), undefined);
      assert.deepEqual(await store.log(build(1).id, 0, 10), []);
      assert.deepEqual(
        (await store.unfinished("n1")).map(({ id }) => id),
        [build(2).id],
      );
      await close();
    });

    test("of an organization's builds as many are open as may be, however many requests come at once", async () => {
      const { store, close } = await open();
      const bounds = { keep: 10, open: 3 };
      const made = await Promise.all([1, 2, 3, 4, 5, 6].map((number) => store.insert(build(number), bounds)));
      assert.equal(made.filter((refused) => refused === undefined).length, 3);
      assert.equal(made.filter((refused) => refused === "too many are open").length, 3);
      assert.equal(await store.insert(build(7, { org_id: "o2" }), bounds), undefined, "others are not counted");
      const [first = ""] = (await store.unfinished("n1")).map(({ id }) => id);
      await store.change(first, ["queued"], { state: "complete" });
      assert.equal(await store.insert(build(8), bounds), undefined);
      await close();
    });

    test("a log is read from a piece on", async () => {
      const { store, close } = await open();
      await store.insert(build(1), BOUNDS);
      for (const seq of [1, 2, 3]) await store.appendLog(build(1).id, { seq, text: `piece ${seq}\n` });
      await store.appendLog("missing", { seq: 1, text: "lost" });
      assert.deepEqual(await store.log(build(1).id, 1, 1), [{ seq: 2, text: "piece 2\n" }]);
      assert.deepEqual(
        (await store.log(build(1).id, 0, 10)).map(({ text }) => text),
        ["piece 1\n", "piece 2\n", "piece 3\n"],
      );
      await close();
    });
  });
}
