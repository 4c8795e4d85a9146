import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { aRelease } from "./fixtures.ts";
import type { Release, ReleaseStore } from "./release-store.ts";
import type { AppRange } from "./store.ts";

const RELEASE = aRelease();
const DIGEST = RELEASE.image_digest ?? "";

/** What every ReleaseStore must do. `open` gives an empty one in which organization o1 has the app a1. */
export function releaseStoreSuite(
  name: string,
  open: () => Promise<{ store: ReleaseStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`release store: ${name}`, { skip }, () => {
    test("versions count up, the oldest releases are pruned, and a status is stored", async () => {
      const { store, close } = await open();
      for (let version = 1; version <= 5; version++)
        assert.deepEqual(await store.insertRelease(RELEASE, 3), { ...RELEASE, version });
      assert.deepEqual(
        (await store.releases("a1", { limit: 10 })).map(({ version }) => version),
        [5, 4, 3],
      );
      assert.equal((await store.releases("a1", { limit: 1 })).length, 1);
      const after_5 = await store.releases("a1", { after: [5], limit: 1 });
      assert.deepEqual(
        after_5.map(({ version }) => version),
        [4],
      );
      const newest = async (range: AppRange, limit: number): Promise<number[]> =>
        (await store.newestOfEach(range, limit)).map(({ version }) => version);
      assert.deepEqual(await newest({ app_id: "a1" }, 2), [5, 4]);
      assert.deepEqual(await newest({ org_id: "o1" }, 9), [5, 4, 3]);
      assert.deepEqual(await newest({ org_id: "o1", page: { after: ["a1"], limit: 9 } }, 9), []);
      assert.equal(await store.putStatus("a1", 4, { status: "failed", failure: "exit code 3" }, 9), true);
      assert.equal(await store.putStatus("a1", 1, { status: "complete", failure: null }, 9), false);
      const kept = await store.findRelease("a1", 4);
      const outcome = { status: "failed", failure: "exit code 3", updated_at: 9 };
      assert.deepEqual({ ...kept }, { ...RELEASE, version: 4, ...outcome });
      assert.equal(await store.findRelease("a1", 1), undefined);
      assert.equal(await store.insertRelease({ ...RELEASE, app_id: "a9" }, 3), undefined);
      await close();
    });

    test("a release is renewed while it runs, ends once, and is listed as long as it has a lease", async () => {
      const { store, close } = await open();
      await store.insertRelease(RELEASE, 50);
      await store.insertRelease({ ...RELEASE, lease_ms: 60_000 }, 50);
      const leased = async () => (await store.leased()).map((one) => ({ ...one }));
      assert.deepEqual(await leased(), [{ app_id: "a1", version: 2, updated_at: 5, lease_ms: 60_000 }]);
      assert.equal(await store.putStatus("a1", 2, { status: "running", failure: null }, 7), true);
      assert.deepEqual(await leased(), [{ app_id: "a1", version: 2, updated_at: 7, lease_ms: 60_000 }]);
      const failed = { status: "failed", failure: "silent" } as const;
      assert.equal(await store.putStatus("a1", 2, failed, 8, 5), false, "it was renewed");
      assert.equal(await store.putStatus("a1", 2, failed, 8, 7), true);
      assert.deepEqual(await leased(), []);
      assert.equal(await store.putStatus("a1", 2, { status: "complete", failure: null }, 9), false, "it has ended");
      assert.equal((await store.findRelease("a1", 2))?.status, "failed");
      await close();
    });

    test("an organization's running releases are listed with their progress, the newest first", async () => {
      const { store, close } = await open();
      for (const created_at of [1, 2, 3]) await store.insertRelease(aRelease({ created_at }), 10);
      await store.putStatus("a1", 2, { status: "complete", failure: null }, 7);
      await store.putStatus("a1", 3, { status: "running", failure: null, progress: "1 of 2 machines" }, 7);
      await store.putStatus("a1", 3, { status: "running", failure: null }, 8);
      const running = await store.running("o1", { limit: 9 });
      assert.deepEqual(
        running.map(({ app_name, version, progress, updated_at }) => [app_name, version, progress, updated_at]),
        [
          ["a1", 3, "1 of 2 machines", 8],
          ["a1", 1, null, 5],
        ],
      );
      assert.deepEqual(
        (await store.running("o1", { after: [3, "a1", 3], limit: 9 })).map(({ version }) => version),
        [1],
      );
      assert.deepEqual(await store.running("o2", { limit: 9 }), []);
      await close();
    });

    test("a release stores its image and digest, or null when it has none", async () => {
      const { store, close } = await open();
      await store.insertRelease({ ...RELEASE, image: null, image_digest: null }, 50);
      await store.insertRelease(RELEASE, 50);
      const facts = (await store.releases("a1", { limit: 10 })).map(({ image, image_digest }) => [image, image_digest]);
      assert.deepEqual(facts, [
        ["web:1", DIGEST],
        [null, null],
      ]);
      const first = await store.findRelease("a1", 1);
      assert.deepEqual([first?.image, first?.image_digest], [null, null]);
      await close();
    });

    test("the image digests of an app's newest releases are listed as in use", async () => {
      const { store, close } = await open();
      assert.deepEqual(await store.releaseImages(2), []);
      for (const digit of ["1", "2", "3"])
        await store.insertRelease({ ...RELEASE, image_digest: `sha256:${digit.repeat(64)}` }, 50);
      await store.insertRelease({ ...RELEASE, image: null, image_digest: null }, 50);
      const kept = (await store.releaseImages(3)).map((one) => ({ ...one }));
      assert.deepEqual(kept, [
        { org_id: "o1", app_name: "a1", version: 2, digest: `sha256:${"2".repeat(64)}` },
        { org_id: "o1", app_name: "a1", version: 3, digest: `sha256:${"3".repeat(64)}` },
      ]);
      await close();
    });

    test("images of process groups are listed beside the release's own", async () => {
      const { store, close } = await open();
      const [web, db] = ["1", "2"].map((digit) => `sha256:${digit.repeat(64)}`);
      const groups = [web, db].map((digest) => ({ config: { image: `x:1@${digest}` } }));
      await store.insertRelease({ ...RELEASE, image_digest: web ?? "", definition: JSON.stringify({ groups }) }, 50);
      assert.deepEqual(
        (await store.releaseImages(3)).map(({ version, digest }) => [version, digest]),
        [web, db].map((digest) => [1, digest]),
      );
      await close();
    });

    test("of concurrent inserts on the same base version exactly one succeeds", async () => {
      const { store, close } = await open();
      const results = await Promise.all(Array.from({ length: 8 }, () => store.insertRelease(RELEASE, 50, 0)));
      assert.equal(results.filter((result) => result === "behind").length, 7);
      const all = await Promise.all(Array.from({ length: 8 }, () => store.insertRelease(RELEASE, 50)));
      assert.equal(new Set(all.map((made) => (made as Release).version)).size, 8);
      await close();
    });
  });
}
