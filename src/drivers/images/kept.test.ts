/** An image stays startable by its digest after its tag was imported again, while a machine or a release needs it. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import { silentLog } from "#core/log.ts";
import { PLATFORM, type ReleaseImage } from "#machines/runtime/image-source.ts";
import { migrate } from "#stores/migrate.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { sqlImportedImages } from "#stores/sql/imported-images.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { file, NEVER, NOT_ROOT, pieces, tar, tempStore } from "./fixtures.ts";
import { type Images, openImages } from "./images.ts";
import { IMAGE_LIMITS } from "./limits.ts";

const ALL = { dry_run: false, all: true };
const HOURLY = { dry_run: false, all: false };

async function openKept(t: TestContext, shared: boolean) {
  const dir = tempStore(t);
  const clock = virtualClock();
  const needed: ReleaseImage[] = [];
  const database = inlineSqlite();
  await migrate(database);
  const sharing = { names: sqlImportedImages(database), node_id: "n1", objects: new LocalObjects(join(dir, "packed")) };
  const more = { releases: async () => needed, ...(shared ? { sharing } : {}) };
  const images = await openImages(
    join(dir, "images"),
    { registry_config: undefined, registry_allow_private: [] },
    clock,
    silentLog,
    more,
  );
  t.after(() => images.close());
  return { images, clock, needed, dir };
}

const bring = async (images: Images, name: string, content: string): Promise<string> =>
  (await images.import(name, pieces(tar(file("code", content))), PLATFORM, NEVER)).digest;

async function start(images: Images, image: string): Promise<string> {
  const held = await images.hold({ id: "m1", org_id: "o1" }, await images.resolve(image, "o1", NEVER), NEVER);
  return held.ref.digest;
}

const listed = async (images: Images): Promise<string[]> => (await images.list(PLATFORM)).map(({ name }) => name);

for (const shared of [false, true]) {
  suite(`images by digest, ${shared ? "among several processes" : "in one process"}`, { skip: NOT_ROOT }, () => {
    test("a replaced image is started by name@digest and name:tag@digest until it is collected", async (t) => {
      const { images, clock } = await openKept(t, shared);
      const [old, fresh] = [await bring(images, "web:1", "old"), await bring(images, "web:1", "new")];
      assert.equal(await start(images, "web:1"), fresh);
      for (const image of [`web@${old}`, `web:1@${old}`]) assert.equal(await start(images, image), old);
      await images.release("m1");
      await images.collect(HOURLY);
      assert.deepEqual(await listed(images), ["web:1", `web@${old}`]);
      await clock.advance(IMAGE_LIMITS.replaced_kept_ms + 1);
      const { images: removed } = await images.collect(HOURLY);
      assert.deepEqual(
        removed.map(({ name, digest }) => [name, digest]),
        [[`web@${old}`, old]],
      );
      assert.deepEqual(await listed(images), ["web:1"]);
      assert.equal(await start(images, `web@${fresh}`), fresh);
    });

    test("images of releases are not collected, and stay when their tag is removed", async (t) => {
      const { images, needed, dir } = await openKept(t, shared);
      const [old, fresh] = [await bring(images, "web:1", "old"), await bring(images, "web:1", "new")];
      needed.push(
        { org_id: "o1", app_name: "shop", version: 3, digest: old },
        { org_id: "o1", app_name: "shop", version: 4, digest: fresh },
      );
      await images.remove("web:1", PLATFORM);
      await images.collect(ALL);
      assert.deepEqual((await listed(images)).toSorted(), [`web@${old}`, `web@${fresh}`].toSorted());
      for (const digest of [old, fresh]) assert.equal(await start(images, `web:1@${digest}`), digest);
      await images.release("m1");
      await assert.rejects(images.remove(`web@${old}`, PLATFORM), {
        code: "image_in_use",
        message: `web@${old} is needed for a rollback to release 3 of shop`,
      });
      needed.shift();
      await images.remove(`web@${old}`, PLATFORM);
      assert.deepEqual(await listed(images), [`web@${fresh}`]);
      needed.shift();
      await images.collect(ALL);
      await images.close();
      const left = ["layers", "blobs"].flatMap((folder) => readdirSync(join(dir, "images", folder)));
      assert.deepEqual([await listed(images), left], [[], []]);
    });

    test("a tag moved back to an older image, and a second name for it, work", async (t) => {
      const { images, needed } = await openKept(t, shared);
      const old = await bring(images, "web:1", "old");
      await bring(images, "web:1", "new");
      assert.equal(await bring(images, "web:1", "old"), old);
      await bring(images, "other:1", "old");
      needed.push({ org_id: "o1", app_name: "shop", version: 1, digest: old });
      await images.remove("web:1", PLATFORM);
      await images.collect(ALL);
      assert.equal(await start(images, "other:1"), old);
    });
  });
}

suite("images by digest that machines hold", { skip: NOT_ROOT }, () => {
  test("a machine keeps the image that its tag referred to", async (t) => {
    const { images } = await openKept(t, false);
    const old = await bring(images, "web:1", "old");
    assert.equal(await start(images, "web:1"), old);
    await bring(images, "web:1", "new");
    await images.collect(ALL);
    assert.equal(await start(images, `web:1@${old}`), old);
    await images.release("m1");
    await images.collect(ALL);
    assert.deepEqual(await listed(images), ["web:1"]);
    await assert.rejects(
      images.resolve(`127.0.0.1:9/web:1@${old}`, "o1", AbortSignal.timeout(5000)),
      (error: Error & { extras?: { hint?: string } }) => /is kept by its digest while/.test(error.extras?.hint ?? ""),
    );
  });

  test("hangar/hello is resolved by digest even where it is not built yet", async (t) => {
    const [one, two] = [await openKept(t, false), await openKept(t, false)];
    const { digest } = await one.images.resolve("hangar/hello", "o1", NEVER);
    assert.equal((await two.images.resolve(`hangar/hello:latest@${digest}`, "o1", NEVER)).digest, digest);
  });

  test("a machine of hangar/hello resolved on another box boots from this box's build", async (t) => {
    const { images } = await openKept(t, false);
    const own = await images.resolve("hangar/hello", "o1", NEVER);
    const digest = `sha256:${"a".repeat(64)}`;
    const held = await images.hold({ id: "m1", org_id: "o1" }, { ...own, digest }, NEVER);
    assert.equal(held.ref.digest, own.digest);
    assert.equal(held.layers.length, 1);
    await assert.rejects(
      images.resolve(`hangar/hello@${digest}`, "o1", AbortSignal.timeout(1)),
      "asked for, it must be that one",
    );
  });

  test("an organization sees only its own machines as holders of an image", async (t) => {
    const { images } = await openKept(t, false);
    const digest = await bring(images, "web:1", "shared by all");
    const ref = await images.resolve("web:1", "o1", NEVER);
    for (const [id, org_id] of [
      ["m1", "o1"],
      ["m2", "o2"],
    ] as const)
      await images.hold({ id, org_id }, ref, NEVER);
    const idsFor = async (viewer: string) => (await images.show("web:1", viewer)).machine_ids;
    assert.deepEqual([await idsFor("o1"), await idsFor("o2"), await idsFor("o3")], [["m1"], ["m2"], []]);
    assert.deepEqual(await idsFor(PLATFORM), ["m1", "m2"]);
    const [seen] = await images.list("o1");
    assert.deepEqual([seen?.digest, seen?.machines], [digest, 1]);
  });
});
