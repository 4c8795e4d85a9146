import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { aMachine } from "../fixtures.ts";
import type { Machine } from "../types.ts";
import type { ImportedImage, ImportedImages } from "./imported-images.ts";

/** What every ImportedImages must do. `open` gives an empty one, and what puts a machine beside it. */
export function importedImagesSuite(
  name: string,
  open: () => Promise<{
    store: ImportedImages;
    addMachine(machine: Machine): Promise<unknown>;
    close(): Promise<void>;
  }>,
  skip?: string,
): void {
  suite(`imported images: ${name}`, { skip }, () => {
    test("a name refers to the last image stored under it, per owner; images in use by machines are listed", async () => {
      const { store, addMachine, close } = await open();
      const web: ImportedImage = { owner: "o1", name: "hub/web:1", digest: "sha256:aa", node_id: "n1", created_at: 5 };
      const theirs = { ...web, owner: "platform", digest: "sha256:bb" };
      await store.put({ ...web, digest: "sha256:00", node_id: "n9", created_at: 1 });
      await store.put(web);
      await store.put(theirs);
      assert.deepEqual(await store.find("o1", "hub/web:1"), web);
      assert.equal(await store.find("o2", "hub/web:1"), undefined);
      assert.deepEqual(await store.list("platform"), [theirs]);
      assert.deepEqual(await store.list(), [web, theirs]);
      assert.deepEqual(await store.withDigest("sha256:bb"), [theirs]);
      assert.deepEqual(await store.withDigest("sha256:00"), []);
      const image_ref = { registry: "hub", repository: "web", digest: "sha256:aa" };
      await addMachine(aMachine({ id: "m1", image_ref }));
      assert.deepEqual(await store.users("sha256:aa"), ["m1"]);
      assert.deepEqual(await store.users("sha256:bb"), []);
      assert.deepEqual(await store.users("sha256:aa", aMachine().org_id), ["m1"]);
      assert.deepEqual(await store.users("sha256:aa", "another"), []);
      assert.equal(await store.remove("o1", "hub/web:1"), true);
      assert.equal(await store.remove("o1", "hub/web:1"), false);
      assert.deepEqual(await store.list(), [theirs]);
      await close();
    });
  });
}
