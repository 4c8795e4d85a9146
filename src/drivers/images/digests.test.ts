/** An archive whose bytes are not what its digests say is refused, with both digests, and nothing of it stays. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { gzipSync } from "node:zlib";
import { tarPadding } from "#archive/tar.ts";
import { ApiError } from "#core/errors.ts";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import { digestOf, hexOf } from "./blobs.ts";
import {
  file,
  header,
  type MadeImage,
  makeImage,
  NEVER,
  NOT_ROOT,
  ociArchive,
  openStore,
  pieces,
  tar,
} from "./fixtures.ts";
import type { Images } from "./images.ts";

const LAYERS = [tar(file("a", "1")), tar(file("b", "2"))];
const OTHER = tar(file("b", "3"));
const put = (path: string, bytes: Buffer) => Buffer.concat([header(path, bytes), bytes, tarPadding(bytes.length)]);

/** The image with other bytes under the digest of its second layer. */
function damaged(image: MadeImage, packed: (tar: Buffer) => Buffer, bytes: Buffer): MadeImage {
  return { ...image, blobs: new Map(image.blobs).set(digestOf(packed(LAYERS[1] ?? OTHER)), bytes) };
}

/** The image with its manifest changed; the manifest's own digest is right. */
function rewritten(image: MadeImage, change: (text: string) => string): MadeImage {
  const manifest = Buffer.from(change(image.manifest.toString()));
  return { ...image, manifest, digest: digestOf(manifest) };
}

function dockerArchive(layers: readonly Buffer[], config: Buffer, name = hexOf(digestOf(config))): Buffer {
  const paths = layers.map((_, i) => `${String(i).repeat(64)}/layer.tar`);
  const manifest = [{ Config: `${name}.json`, RepoTags: ["d:1"], Layers: paths }];
  const bodies = layers.map((layer, i) => put(paths[i] ?? "", layer));
  return tar(put(`${name}.json`, config), ...bodies, file("manifest.json", JSON.stringify(manifest)));
}

const plain = (bytes: Buffer): Buffer => bytes;
const weak = (bytes: Buffer): Buffer => gzipSync(bytes, { level: 1 });
const strong = (bytes: Buffer): Buffer => gzipSync(bytes, { level: 9 });
const padded = (bytes: Buffer): Buffer => Buffer.concat([bytes, Buffer.alloc(512)]);
const [, second = OTHER] = LAYERS;

/** Same length, other bytes: comparing sizes would not detect it. */
const sameSize = (bytes: Buffer): Buffer => Buffer.from(bytes.toString("latin1").replace("2", "3"), "latin1");

const CASES: [what: string, archive: () => Buffer, why: RegExp][] = [
  [
    "other bytes of the same size",
    () => ociArchive(damaged(makeImage(LAYERS), plain, sameSize(second))),
    new RegExp(`layer ${digestOf(second)} .*digest is ${digestOf(second)}, and it is ${digestOf(sameSize(second))}`),
  ],
  [
    "another compression of the same tar",
    () => {
      const bytes = weak(second);
      return ociArchive(damaged(resized(makeImage(LAYERS, {}, strong), bytes.length), strong, bytes));
    },
    new RegExp(`digest is ${digestOf(strong(second))}, and it is ${digestOf(weak(second))}`),
  ],
  [
    "more bytes than the manifest says",
    () => ociArchive(damaged(makeImage(LAYERS), plain, padded(second))),
    new RegExp(`layer ${digestOf(second)} is to have ${second.length} bytes, and has ${padded(second).length}`),
  ],
  [
    "a config that names another layer",
    () => {
      const { config } = makeImage([LAYERS[0] ?? OTHER, OTHER]);
      const image = makeImage(LAYERS);
      const facts = { digest: digestOf(config), size: config.length };
      const lying = rewritten(image, (text) =>
        JSON.stringify({ ...(JSON.parse(text) as object), config: { mediaType: "x", ...facts } }),
      );
      return ociArchive({ ...lying, blobs: new Map(image.blobs).set(facts.digest, config) });
    },
    new RegExp(`config says ${digestOf(OTHER)}, and it is ${digestOf(second)}`),
  ],
  [
    "a config of other bytes",
    () => {
      const image = makeImage(LAYERS);
      const other = Buffer.from(image.config.toString().replace("linux", "Linux"));
      return ociArchive({ ...image, blobs: new Map(image.blobs).set(digestOf(image.config), other) });
    },
    /the config is to have the digest sha256:\w+, and its bytes have sha256:\w+/,
  ],
  [
    "a manifest of other bytes",
    () => {
      const image = makeImage(LAYERS);
      return ociArchive({ ...image, manifest: Buffer.from(image.manifest.toString().replace("2,", "3,")) });
    },
    /the manifest is to have the digest sha256:\w+, and its bytes have sha256:\w+/,
  ],
  [
    "a docker archive with another layer",
    () => dockerArchive([LAYERS[0] ?? OTHER, OTHER], makeImage(LAYERS).config),
    new RegExp(`config says ${digestOf(second)}, and it is ${digestOf(OTHER)}`),
  ],
  [
    "a docker archive whose config is called by another hash",
    () => dockerArchive(LAYERS, makeImage(LAYERS).config, "a".repeat(64)),
    new RegExp(`the config is to have the digest sha256:${"a".repeat(64)}`),
  ],
  ["an OCI archive that is cut", () => ociArchive(makeImage(LAYERS)).subarray(0, -1500), /cut short/],
  ["a docker archive that is cut", () => cut(dockerArchive(LAYERS, makeImage(LAYERS).config)), /cut short|has no file/],
  ["a root file system that is cut", () => second.subarray(0, 700), /cut short/],
];

function resized(image: MadeImage, size: number): MadeImage {
  return rewritten(image, (text) => {
    const manifest = JSON.parse(text) as { layers: { size: number }[] };
    if (manifest.layers[1]) manifest.layers[1].size = size;
    return JSON.stringify(manifest);
  });
}

const cut = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length - 1800);

const left = (images: Images & { dir: string }): string[] =>
  ["layers", "blobs", "names", "ingest"].flatMap((folder) => readdirSync(join(images.dir, folder)));

suite("digests of imported images", { skip: NOT_ROOT }, () => {
  for (const [what, archive, why] of CASES) {
    test(`import is refused: ${what}`, async (t) => {
      const images = await openStore(t);
      const work = images.import("a:1", pieces(archive()), PLATFORM, NEVER);
      const error = await work.then(
        () => assert.fail("it was imported"),
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof ApiError, String(error));
      assert.equal(error.code, "image_refused");
      assert.match(error.message, why);
      assert.deepEqual(left(images), []);
      assert.deepEqual(await images.list(PLATFORM), []);
    });
  }

  test("layer bytes are verified even when a layer with that digest is already stored", async (t) => {
    const images = await openStore(t);
    await images.import("good:1", pieces(ociArchive(makeImage(LAYERS))), PLATFORM, NEVER);
    for (const [what, archive, why] of CASES) {
      await assert.rejects(images.import("bad:1", pieces(archive()), PLATFORM, NEVER), { message: why }, what);
    }
    assert.deepEqual(
      (await images.list(PLATFORM)).map(({ name, complete }) => [name, complete]),
      [["good:1", true]],
    );
  });
});
