import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { tempDir } from "../../test/support.ts";
import type { ObjectStore } from "./objects.ts";

interface Kind {
  /** An empty one. */
  open(t: TestContext): Promise<ObjectStore>;
  skip?: string | undefined;
  /** The error when `if_absent` is refused. */
  unconditional?: RegExp;
}

const keys = async (store: ObjectStore, prefix: string): Promise<string[]> =>
  (await store.list(prefix)).map(({ key }) => key);
const text = async (store: ObjectStore, key: string): Promise<string | undefined> =>
  (await store.get(key))?.toString("utf8");

/** What every ObjectStore must do. */
export function objectStoreSuite(name: string, { open, skip, unconditional }: Kind): void {
  suite(`object store: ${name}`, { skip }, () => {
    test("objects are listed by the bytes of their keys and can be read until they are deleted", async (t) => {
      const store = await open(t);
      const put = ["a/2", "a/10", "b/1", "a/1", "a-b/1", "a.b", "A/1"];
      for (const key of put) assert.equal(await store.put(key, Buffer.from(key)), true);
      assert.deepEqual(await keys(store, ""), put.toSorted());
      assert.deepEqual(await keys(store, "a"), put.filter((key) => key.startsWith("a")).toSorted());
      assert.deepEqual(await keys(store, "a/1"), ["a/1", "a/10"]);
      for (const key of put) assert.equal(await text(store, key), key);
      await store.delete(["a/10", "never", "b/1"]);
      await store.delete(["a/10"]);
      await store.delete([]);
      assert.deepEqual(await keys(store, "a/"), ["a/1", "a/2"]);
      assert.deepEqual(await keys(store, "b"), []);
      assert.equal(await store.get("a/10"), undefined);
    });

    test("a missing object is not found and leaves no file", async (t) => {
      const store = await open(t);
      const file = join(tempDir(), "file");
      assert.equal(await store.get("none"), undefined);
      assert.equal(await store.get("none", { offset: 0, length: 1 }), undefined);
      assert.equal(await store.head("none"), undefined);
      assert.equal(await store.getFile("none", file), false);
      assert.ok(!existsSync(file));
      assert.deepEqual(await keys(store, "x/"), []);
    });

    test("a range read past the end is shorter, behind the end empty", async (t) => {
      const store = await open(t);
      await store.put("k", Buffer.from("0123456789"));
      const part = async (offset: number, length: number) => (await store.get("k", { offset, length }))?.toString();
      assert.equal(await part(0, 4), "0123");
      assert.equal(await part(3, 1), "3");
      assert.equal(await part(8, 100), "89");
      assert.equal(await part(10, 5), "");
      assert.deepEqual(await store.head("k"), { key: "k", size: 10 });
    });

    test("a second put replaces the object; an empty object is allowed", async (t) => {
      const store = await open(t);
      await store.put("k", Buffer.from("old and long"));
      await store.put("k", Buffer.from("new"));
      assert.equal(await text(store, "k"), "new");
      await store.put("k", new Uint8Array());
      assert.deepEqual(await store.head("k"), { key: "k", size: 0 });
      assert.equal(await text(store, "k"), "");
    });

    test("files larger than one S3 request are uploaded and downloaded unchanged", async (t) => {
      const store = await open(t);
      const dir = tempDir();
      const bytes = randomBytes((17 << 20) + 5);
      writeFileSync(join(dir, "in"), bytes);
      await store.put("large", { file: join(dir, "in") });
      assert.equal(await store.getFile("large", join(dir, "out")), true);
      assert.ok(readFileSync(join(dir, "out")).equals(bytes));
      const range = { offset: (16 << 20) - 3, length: 7 };
      assert.deepEqual(await store.get("large", range), bytes.subarray(range.offset, range.offset + range.length));
    });

    test("1,100 objects put concurrently are all listed, over several pages", async (t) => {
      const store = await open(t);
      const all = Array.from({ length: 1100 }, (_, i) => `many/${String(i).padStart(5, "0")}`);
      for (let at = 0; at < all.length; at += 50) {
        await Promise.all(all.slice(at, at + 50).map((key) => store.put(key, Buffer.from(key))));
      }
      assert.deepEqual(await keys(store, "many/"), all);
      await store.delete(all.slice(1));
      assert.deepEqual(await keys(store, "many/"), all.slice(0, 1));
    });

    test("with if_absent the first put wins, and of concurrent ones exactly one", async (t) => {
      const store = await open(t);
      const put = (body: string) => store.put("lock/a", Buffer.from(body), { if_absent: true });
      if (unconditional) return await assert.rejects(put("one"), unconditional);
      const results = await Promise.all(["one", "two", "three", "four"].map(put));
      assert.equal(results.filter(Boolean).length, 1);
      const winner = await text(store, "lock/a");
      assert.equal(await put("five"), false);
      assert.equal(await text(store, "lock/a"), winner);
      await store.delete(["lock/a"]);
      assert.equal(await put("six"), true);
    });

    test("a key that would leave the store is refused", async (t) => {
      const store = await open(t);
      for (const key of ["../x", "/x", "a/../x", "a//b", "", "a/", ".."]) {
        await assert.rejects(store.put(key, Buffer.from("x")), /is a key of an object/, key);
      }
    });
  });
}
