import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LocalObjects } from "#stores/objects/local.ts";
import { layoutOf } from "./files.ts";
import { NEVER, tempStore } from "./fixtures.ts";
import { LayerStore } from "./layer-store.ts";

test("a layer that cannot be packed fails the import, and not the platform", async (t) => {
  const dir = tempStore(t);
  const file = join(dir, "layer.tar");
  writeFileSync(file, "layer");
  // The directory for unfinished files is missing. An unhandled error would end the test.
  const layer_store = new LayerStore(new LocalObjects(join(dir, "objects")), layoutOf(join(dir, "images")));
  const layers = [{ diff_id: `sha256:${"0".repeat(64)}`, file, start: 0, length: 5 }];
  await assert.rejects(layer_store.put({ documents: [], layers }, NEVER), { code: "ENOENT" });
});
