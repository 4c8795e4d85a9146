import assert from "node:assert/strict";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { BuildCaches } from "./build-caches.ts";

test("at a start, unfinished disks and those of whole organizations are removed, and an app's disk stays", async () => {
  const data_dir = tempDir();
  const dir = join(data_dir, "builds", "cache");
  mkdirSync(dir, { recursive: true });
  for (const name of ["o1.ext4", "o1.a1.ext4", "o2.a2.ext4.part"]) writeFileSync(join(dir, name), "");
  await BuildCaches.in(data_dir).clear();
  assert.deepEqual(readdirSync(dir), ["o1.a1.ext4"]);
  await BuildCaches.in(tempDir()).clear();
});
