import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import type { ObjectStore } from "./object-store.ts";

/** What every ObjectStore must do. */
export function objectStoreSuite(name: string, open: (dir: string) => ObjectStore): void {
  suite(`object store: ${name}`, () => {
    test("what is put is listed in order and comes back, until it is deleted", async (t) => {
      const [store, dir] = [open(tempDir(t)), tempDir(t)];
      const [source, target] = [join(dir, "source"), join(dir, "target")];
      for (const key of ["a/2", "a/10", "b/1", "a/1"]) {
        writeFileSync(source, key);
        await store.put(key, source);
      }
      assert.deepEqual(await store.list("a/"), ["a/1", "a/10", "a/2"]);
      assert.equal(await store.get("a/10", target), true);
      assert.equal(readFileSync(target, "utf8"), "a/10");
      await store.delete("a/10");
      await store.delete("a/10");
      assert.deepEqual(await store.list(""), ["a/1", "a/2", "b/1"]);
    });

    test("what is not there is not there, and leaves no file", async (t) => {
      const [store, dir] = [open(tempDir(t)), tempDir(t)];
      assert.equal(await store.get("none", join(dir, "target")), false);
      assert.ok(!existsSync(join(dir, "target")));
      assert.deepEqual(await store.list("x"), []);
    });

    test("putting again replaces", async (t) => {
      const [store, dir] = [open(tempDir(t)), tempDir(t)];
      for (const text of ["old", "new"]) {
        writeFileSync(join(dir, "source"), text);
        await store.put("key", join(dir, "source"));
      }
      await store.get("key", join(dir, "target"));
      assert.equal(readFileSync(join(dir, "target"), "utf8"), "new");
    });
  });
}
