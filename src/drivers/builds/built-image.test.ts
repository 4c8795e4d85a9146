import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { BuildFailed } from "#builds/builder.ts";
import type { ImagePart } from "#machines/runtime/image-source.ts";
import { digestOf } from "../images/blobs.ts";
import { MEDIA } from "../images/documents.ts";
import { file, makeImage, openBelow, tar, tempStore, writeLayout } from "../images/fixtures.ts";
import { IMAGE_LIMITS } from "../images/limits.ts";
import { CONFIG, LAYOUT } from "./build-script.ts";
import { type KnownLayers, readBuilt } from "./built-image.ts";

const [BASE, OWN] = [tar(file("base")), tar(file("own"))];
const part = (content: string): ImagePart => {
  const diff_id = digestOf(content);
  return { diff_id, digest: diff_id, size: 1, media_type: MEDIA.layer };
};
const LAYERS_OF_BASE = [part("one"), part("two")];
const KNOWN: KnownLayers = new Map([[digestOf(BASE), LAYERS_OF_BASE]]);
const HISTORY = [{ created_by: "base image" }, { created_by: "ENV", empty_layer: true }, { created_by: "COPY" }];

/** What a build leaves: the layer of the base image is an empty file. */
function leave(t: TestContext): string {
  const dir = tempStore(t);
  const image = makeImage([BASE, OWN], { Cmd: ["/run"], Healthcheck: { Test: ["NONE"] } });
  writeLayout(join(dir, LAYOUT), { ...image, blobs: new Map(image.blobs).set(digestOf(BASE), Buffer.alloc(0)) });
  const config = JSON.parse(image.config.toString()) as object;
  writeFileSync(join(dir, CONFIG), `${JSON.stringify({ ...config, history: HISTORY })}\n`);
  return dir;
}

const blob = (dir: string, bytes: Buffer): string => join(dir, LAYOUT, "blobs", digestOf(bytes).replace(":", "/"));

suite("what a build left", () => {
  test("is the layers of its base image, as the store has them, and the files of the others", (t) => {
    const dir = leave(t);
    const { config, layers, close } = readBuilt(dir, KNOWN);
    const own = layers[2] ?? assert.fail();
    assert.deepEqual(layers.slice(0, 2), LAYERS_OF_BASE);
    assert.deepEqual([own.diff_id, own.size, own.claimed], [digestOf(OWN), OWN.length, true]);
    assert.deepEqual(readFileSync(own.file ?? ""), OWN);
    const { history, rootfs, config: inner } = JSON.parse(config.toString());
    assert.deepEqual(inner, { Cmd: ["/run"], Healthcheck: { Test: ["NONE"] } });
    assert.deepEqual(
      rootfs.diff_ids,
      layers.map(({ diff_id }) => diff_id),
    );
    assert.deepEqual(history, [HISTORY[0], ...HISTORY], "each layer has an entry");
    close();
    assert.deepEqual(openBelow(dir), []);
  });

  test("is refused when a step put something else there: links, folders, nothing, too much", (t) => {
    const secret = join(tempStore(t), "secret");
    writeFileSync(secret, OWN);
    const wrong: [string, (dir: string) => void][] = [
      ["a layer that is a link out of the disk", (dir) => replace(blob(dir, OWN), (path) => symlinkSync(secret, path))],
      ["a layer that is a folder", (dir) => replace(blob(dir, OWN), (path) => mkdirSync(path))],
      ["no layer", (dir) => rmSync(blob(dir, OWN))],
      ["no config", (dir) => rmSync(join(dir, CONFIG))],
      [
        "a config out of bounds",
        (dir) => writeFileSync(join(dir, CONFIG), Buffer.alloc(IMAGE_LIMITS.document_bytes + 1)),
      ],
      ["another root", (dir) => replace(join(dir, "out"), (path) => symlinkSync("/", path))],
    ];
    for (const [what, change] of wrong) {
      const dir = leave(t);
      change(dir);
      assert.throws(() => readBuilt(dir, KNOWN), BuildFailed, what);
      assert.deepEqual(openBelow(dir), [], what);
    }
  });
});

function replace(path: string, put: (path: string) => void): void {
  rmSync(path, { recursive: true });
  put(path);
}
