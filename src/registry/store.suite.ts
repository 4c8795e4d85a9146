import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { ManifestWrite, RegistryStore } from "./store.ts";
import type { NamePage, RepositoryBlob } from "./types.ts";

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

const blobOf = (repository: string, letter: string, touched_at = 10): RepositoryBlob => ({
  org_id: "o1",
  repository,
  digest: digest(letter),
  size: 100,
  key: `blobs/${letter}/${repository}`,
  node_id: "n1",
  touched_at,
});

const writeOf = (
  letter: string,
  more: Partial<ManifestWrite> & { touched_at?: number; subject?: string } = {},
): ManifestWrite => {
  const { touched_at = 10, subject = null, ...rest } = more;
  const blob = blobOf("web", letter, touched_at);
  return {
    blob,
    manifest: {
      org_id: "o1",
      repository: "web",
      digest: blob.digest,
      media_type: "a/b",
      size: 100,
      subject,
      artifact_type: null,
      annotations: null,
      touched_at,
    },
    tag: undefined,
    blobs: [],
    manifests: [],
    ...rest,
  };
};

/** What every RegistryStore must do. `open` gives an empty one with the organizations o1 and o2. */
export function registryStoreSuite(
  name: string,
  open: () => Promise<{ store: RegistryStore; close(): Promise<void> }>,
  skip?: string,
): void {
  suite(`registry store: ${name}`, { skip }, () => {
    test("a blob keeps its first key, mounts share it, and the key is unused after the last mount is deleted", async () => {
      const { store, close } = await open();
      assert.deepEqual(await store.putBlob(blobOf("web", "a")), blobOf("web", "a"));
      const again = { ...blobOf("web", "a"), key: "blobs/a/second", touched_at: 20 };
      assert.equal((await store.putBlob(again)).key, "blobs/a/web");
      assert.equal((await store.findBlob("o1", "web", digest("a")))?.touched_at, 20);
      assert.equal(await store.findBlob("o2", "web", digest("a")), undefined);
      const mounted = await store.mountBlob("o1", digest("a"), "web", "api", 30);
      assert.deepEqual({ ...mounted }, { ...blobOf("api", "a", 30), key: "blobs/a/web" });
      assert.equal(await store.mountBlob("o1", digest("b"), "web", "api", 30), undefined);
      assert.equal(await store.mountBlob("o2", digest("a"), "web", "api", 30), undefined);
      assert.equal(await store.usedBytes("o1"), 100);
      assert.equal(await store.usedBytes("o2"), 0);
      assert.deepEqual(await store.deleteBlob("o1", "web", digest("a")), {});
      assert.deepEqual(await store.deleteBlob("o1", "api", digest("a")), { unused_key: "blobs/a/web" });
      assert.equal(await store.deleteBlob("o1", "api", digest("a")), undefined);
      await close();
    });

    test("a manifest is stored with its tag and references, or not at all", async () => {
      const { store, close } = await open();
      await store.putBlob(blobOf("web", "a"));
      assert.equal(await store.putManifest(writeOf("m", { blobs: [digest("a"), digest("b")], tag: "1" })), false);
      assert.equal(await store.findTag("o1", "web", "1"), undefined);
      assert.equal(await store.findBlob("o1", "web", digest("m")), undefined);
      assert.equal(await store.putManifest(writeOf("m", { blobs: [digest("a")], tag: "1", touched_at: 50 })), true);
      assert.equal((await store.findBlob("o1", "web", digest("a")))?.touched_at, 50);
      assert.equal(await store.deleteBlob("o1", "web", digest("a")), "referenced");
      assert.equal(await store.deleteBlob("o1", "web", digest("m")), "referenced");
      assert.equal(await store.findTag("o1", "web", "1"), digest("m"));
      assert.deepEqual(
        { ...(await store.findManifest("o1", "web", digest("m"))) },
        writeOf("m", { touched_at: 50 }).manifest,
      );
      await store.putManifest(writeOf("n", { tag: "1" }));
      assert.equal(await store.findTag("o1", "web", "1"), digest("n"));
      await store.putManifest(writeOf("i", { manifests: [digest("m")], tag: "all" }));
      assert.deepEqual(await store.indexesOf("o1", "web", digest("m")), [digest("i")]);
      assert.equal(await store.putManifest(writeOf("j", { manifests: [digest("x")] })), false);
      await store.putManifest(writeOf("s", { subject: digest("m") }));
      assert.deepEqual(
        (await store.referrers("o1", "web", digest("m"), { last: "", limit: 10 })).map((one) => one.digest),
        [digest("s")],
      );
      assert.deepEqual(
        (await store.tags("o1", "web", { last: "", limit: 10 })).map(({ tag }) => tag),
        ["1", "all"],
      );
      assert.deepEqual(
        (await store.tags("o1", "web", { last: "1", limit: 10 })).map(({ tag }) => tag),
        ["all"],
      );
      assert.deepEqual([await store.hasRepository("o1", "web"), await store.hasRepository("o2", "web")], [true, false]);
      const page = { last: "", limit: 10 };
      const first = [{ repository: "web", tag: "1", digest: digest("n") }];
      const second = { repository: "web", tag: "all", digest: digest("i") };
      const tags = async (from: NamePage, limit: number) =>
        (await store.tagsOfEach("o1", from, limit)).map((one) => ({ ...one }));
      assert.deepEqual(await tags(page, 1), first);
      assert.deepEqual(await tags(page, 2), [...first, second]);
      assert.deepEqual(await tags({ last: "web", limit: 10 }, 2), []);
      const [found] = await store.repositories("o1", page);
      assert.deepEqual([found?.repository, Number(found?.tags), Number(found?.manifests)], ["web", 2, 4]);
      assert.equal(await store.deleteTag("o1", "web", "all"), true);
      assert.equal(await store.deleteTag("o1", "web", "all"), false);
      assert.equal(await store.deleteManifest("o1", "web", digest("n")), true);
      assert.equal(await store.findTag("o1", "web", "1"), undefined);
      assert.equal(await store.deleteManifest("o1", "web", digest("n")), false);
      await close();
    });

    test("clean-up removes old untagged manifests, then unreferenced blobs, and no others", async () => {
      const { store, close } = await open();
      for (const letter of ["a", "b", "c"]) await store.putBlob(blobOf("web", letter));
      await store.putManifest(writeOf("m", { blobs: [digest("a")], tag: "1" }));
      await store.putManifest(writeOf("n", { blobs: [digest("b")] }));
      await store.putManifest(writeOf("l", {}));
      await store.putManifest(writeOf("i", { manifests: [digest("l")], tag: "all" }));
      await store.putManifest(writeOf("s", { subject: digest("m") }));
      const untagged = async (before: number) => (await store.untagged(before, 10)).map((one) => one.digest);
      assert.deepEqual(await untagged(10), []);
      assert.deepEqual(await untagged(11), [digest("n")]);
      const collect = async (before: number) => (await store.collectBlobs(before, 10)).map(({ key }) => key).sort();
      assert.deepEqual(await collect(10), []);
      assert.deepEqual(await collect(11), ["blobs/c/web"]);
      await store.deleteManifest("o1", "web", digest("n"));
      await store.mountBlob("o1", digest("b"), "web", "api", 99);
      assert.deepEqual(await collect(11), ["blobs/n/web"]);
      assert.deepEqual(await store.knownKeys(["blobs/b/web", "blobs/n/web"]), new Set(["blobs/b/web"]));
      assert.deepEqual(await collect(100), ["blobs/b/web"]);
      await close();
    });
  });
}
