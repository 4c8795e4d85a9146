import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { virtualClock } from "#core/fixtures.ts";
import type { HeldImage } from "#machines/runtime/image-source.ts";
import { tempDir } from "../../../test/support.ts";
import { BaseLayouts } from "./base-layouts.ts";

/** An image of one layer; the same number is the same digest. */
function image(number: number, labels: Record<string, string> = {}): HeldImage {
  const layer = join(tempDir(), "layer");
  mkdirSync(layer);
  writeFileSync(join(layer, "name"), `image ${number}`);
  return {
    ref: { registry: "docker.io", repository: "library/base", digest: `sha256:${String(number).padStart(64, "0")}` },
    layers: [layer],
    config: { entrypoint: [], cmd: [], env: {}, user: "", working_dir: "" },
    architecture: "amd64",
    labels,
    exposed_ports: [],
  };
}

const blobsIn = (target: string): string[] => readdirSync(join(target, "blobs/sha256")).sort();

/** Every blob of the layout is under the digest of its bytes. */
function assertSound(target: string): void {
  assert.equal(blobsIn(target).length, 3, "a layer, its config and a manifest");
  for (const name of blobsIn(target))
    assert.equal(
      createHash("sha256")
        .update(readFileSync(join(target, "blobs/sha256", name)))
        .digest("hex"),
      name,
    );
}

function open(kept: number) {
  const [dir, out] = [tempDir(), tempDir()];
  const clock = virtualClock();
  const layouts = new BaseLayouts(join(dir, "bases"), kept, clock);
  mkdirSync(join(dir, "bases"));
  return { layouts, clock, bases: join(dir, "bases"), target: (name: string) => join(out, name) };
}

suite("base layouts of builds that run at the same time", () => {
  test("are made once, whichever organization's build asks first, and each build has the whole of it", async () => {
    const { layouts, bases, target } = open(8);
    await Promise.all(["a", "b", "c"].map((name) => layouts.put(image(1), target(name))));
    for (const name of ["a", "b", "c"]) assertSound(target(name));
    const [blob = ""] = blobsIn(target("a"));
    const inodes = ["a", "b", "c"].map((name) => statSync(join(target(name), "blobs/sha256", blob)).ino);
    assert.equal(new Set(inodes).size, 1, "all have the same files");
    assert.deepEqual(readdirSync(bases).length, 1);
  });

  test("are made again when one of the builds removes what the other waited for", async () => {
    const { layouts, clock, target } = open(1);
    clock.jump(60_000);
    await layouts.put(image(1), target("newer"));
    // The host's clock was set back: what is made now is the oldest, and goes as soon as its first build has it.
    clock.jump(-30_000);
    await Promise.all(["a", "b"].map((name) => layouts.put(image(2), target(name))));
    for (const name of ["newer", "a", "b"]) assertSound(target(name));
  });

  test("a build whose layers cannot be read fails alone", async () => {
    const { layouts, target } = open(8);
    const damaged = { ...image(1), layers: [join(tempDir(), "missing")] };
    const [first, second] = await Promise.allSettled([
      layouts.put(damaged, target("a")),
      layouts.put(image(1), target("b")),
    ]);
    assert.equal(first.status, "rejected");
    assert.equal(second.status, "fulfilled");
    assertSound(target("b"));
  });

  test("are not changed by a tag that was moved in between: labels are those of the layers' own image", async () => {
    const { layouts, target } = open(8);
    await layouts.put(image(1, { of: "this image" }), target("a"));
    const texts = blobsIn(target("a")).map((name) => readFileSync(join(target("a"), "blobs/sha256", name), "latin1"));
    assert.ok(texts.some((text) => text.includes('"Labels":{"of":"this image"}')));
  });
});
