/** The image store: import, ownership, removal and clean-up. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { tarPadding } from "#archive/tar.ts";
import { ApiError } from "#core/errors.ts";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import { digestOf, hexOf } from "./blobs.ts";
import {
  dir,
  file,
  header,
  makeImage,
  NEVER,
  NOT_ROOT,
  ociArchive,
  openStore,
  pieces,
  sha256,
  symlink,
  tar,
  tempStore,
} from "./fixtures.ts";
import type { Images } from "./images.ts";

const rootfs = tar(dir("."), dir("./bin"), file("./bin/sh", "#!"), file("./etc/hostname", "box"));
const layers = [tar(dir("a"), file("a/1")), tar(file("a/2"), file(".wh.b", ""))];

const bring = (images: Images, name: string, bytes: Buffer, owner = PLATFORM) =>
  images.import(name, pieces(bytes), owner, NEVER);

async function hold(images: Images, name: string, org_id: string, id = "m1") {
  return await images.hold({ id, org_id }, await images.resolve(name, org_id, NEVER), NEVER);
}

async function refused(work: Promise<unknown>): Promise<ApiError> {
  const thrown = await work.then(
    () => assert.fail("it worked"),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ApiError, String(thrown));
  return thrown;
}

/** What `docker save` writes: newer ones keep layers among the blobs, older ones in folders with links. */
function dockerArchive(tags: string[], how: "new" | "old"): Buffer {
  const { config } = makeImage(layers, { Cmd: ["/run"] });
  const put = (path: string, bytes: Buffer) => Buffer.concat([header(path, bytes), bytes, tarPadding(bytes.length)]);
  const id = (i: number) => String(i).repeat(64);
  const paths = layers.map((layer, i) => (how === "new" ? `blobs/sha256/${sha256(layer)}` : `${id(i)}/layer.tar`));
  const name = how === "new" ? `blobs/sha256/${hexOf(digestOf(config))}` : `${hexOf(digestOf(config))}.json`;
  const manifest = [{ Config: name, RepoTags: tags, Layers: paths }];
  const bodies = layers.flatMap((layer, i) =>
    how === "old" && i === 1
      ? [put(`${id(9)}/layer.tar`, layer), symlink(paths[i] ?? "", `../${id(9)}/layer.tar`)]
      : [put(paths[i] ?? "", layer)],
  );
  return tar(put(name, config), ...bodies, file("repositories", "{}"), file("manifest.json", JSON.stringify(manifest)));
}

suite("image import", { skip: NOT_ROOT }, () => {
  test("root file systems, OCI layouts and docker archives are imported, plain and compressed", async (t) => {
    const images = await openStore(t);
    const kinds: [string, Buffer][] = [
      ["rootfs:1", rootfs],
      ["rootfs:gz", gzipSync(rootfs)],
      ["oci:1", ociArchive(makeImage(layers, { Cmd: ["/run"] }))],
      ["oci:zst", zstdCompressSync(ociArchive(makeImage(layers, { Cmd: ["/run"] }, gzipSync)))],
      ["docker:1", dockerArchive(["docker:1"], "new")],
      ["docker:old", gzipSync(dockerArchive(["other:1"], "old"))],
    ];
    for (const [name, bytes] of kinds) {
      const summary = await bring(images, name, bytes);
      assert.deepEqual(
        [summary.name, summary.source, summary.owner, summary.complete],
        [name, "imported", PLATFORM, true],
      );
      const held = await hold(images, name, "any-org", name);
      const single = name.startsWith("rootfs");
      assert.equal(held.layers.length, single ? 1 : 2, name);
      assert.deepEqual(held.config.cmd, single ? [] : ["/run"], name);
      assert.ok(existsSync(join(held.layers[0] ?? "", single ? "bin/sh" : "a/1")), name);
    }
    const digests = new Map((await images.list(PLATFORM)).map(({ name, digest }) => [name, digest]));
    assert.equal(digests.get("rootfs:1"), digests.get("rootfs:gz"), "the same content has the same digest");
    assert.equal(readdirSync(join(images.dir, "layers")).length, 3 * 2, "layers are shared");
    assert.deepEqual(readdirSync(join(images.dir, "ingest")), []);
  });

  test("an invalid import is refused with a clear error and leaves no files", async (t) => {
    const images = await openStore(t, { limits: { upload_bytes: 200_000 } });
    const image = makeImage(layers);
    const cases: [what: string, name: string, bytes: Buffer, code: string, why: RegExp][] = [
      ["nothing", "a:1", Buffer.alloc(0), "image_refused", /nothing was sent/],
      ["no tar", "a:1", Buffer.from("hello ".repeat(200)), "image_refused", /not a tar archive/],
      ["cut gzip", "a:1", gzipSync(rootfs).subarray(0, 50), "image_refused", /cut short/],
      ["too large", "a:1", gzipSync(tar(file("big", "x".repeat(300_000)))), "payload_too_large", /upload_bytes/],
      ["a name in capitals", "Web:1", rootfs, "invalid_request", /not the name of an image/],
      ["a bad tag", "web:-x", rootfs, "invalid_request", /a tag that no image can have/],
      ["a digest", `web@sha256:${"0".repeat(64)}`, rootfs, "invalid_request", /names a digest/],
      ["a layout without its blob", "a:1", ociArchive({ ...image, blobs: new Map() }), "image_refused", /has no file/],
      ["an image for another box", "a:1", ociArchive(foreign()), "image_refused", /is for linux\/s390x/],
      [
        "a hostile layer",
        "a:1",
        ociArchive(makeImage([tar(file("../x"))])),
        "image_refused",
        /points outside the layer/,
      ],
      ["a lying config", "a:1", ociArchive(lying()), "image_refused", /config says/],
      ["several images", "a:9", tar(file("manifest.json", "[{},{}]")), "image_refused", /has 2 images/],
    ];
    for (const [what, name, bytes, code, why] of cases) {
      const error = await refused(bring(images, name, bytes));
      assert.equal(error.code, code, `${what}: ${error.message}`);
      assert.match(error.message, why, what);
    }
    assert.deepEqual(await images.list(PLATFORM), []);
    assert.deepEqual(readdirSync(join(images.dir, "ingest")), []);
    await images.collect({ dry_run: false, all: false });
    assert.deepEqual([readdirSync(join(images.dir, "layers")), readdirSync(join(images.dir, "blobs"))], [[], []]);
  });

  test("an organization's images are private; the platform's are visible to all", async (t) => {
    const images = await openStore(t);
    await bring(images, "shared:1", rootfs);
    await bring(images, "own:1", tar(file("secret")), "org-a");
    await bring(images, "shared:1", tar(file("mine")), "org-a");
    assert.deepEqual(
      (await images.list("org-b")).map(({ name }) => name),
      ["shared:1"],
    );
    assert.equal((await images.list("org-a")).length, 3);
    assert.ok(
      existsSync(join((await hold(images, "shared:1", "org-a")).layers[0] ?? "", "mine")),
      "its own comes first",
    );
    assert.ok(existsSync(join((await hold(images, "shared:1", "org-b", "m2")).layers[0] ?? "", "bin/sh")));
    assert.equal((await refused(images.show("own:1", "org-b"))).code, "image_not_found");
    assert.equal((await refused(images.remove("own:1", "org-b"))).code, "image_not_found");
    assert.equal((await refused(images.remove("shared:1", "org-b"))).code, "image_not_found", "nor the platform's");
    // Not even by its digest: the registry is queried for that, and does not have it.
    const { digest } = await images.show("own:1", "org-a");
    const stop = AbortSignal.timeout(200);
    await assert.rejects(images.resolve(`127.0.0.1:1/own@${digest}`, "org-b", stop));
    assert.equal((await images.resolve(`own:1@${digest}`, "org-a", NEVER)).digest, digest);
  });
});

function foreign() {
  const image = makeImage(layers);
  const config = Buffer.from(image.config.toString().replace(/"architecture":"\w+"/, '"architecture":"s390x"'));
  const manifest = Buffer.from(
    image.manifest
      .toString()
      .replace(digestOf(image.config), digestOf(config))
      .replace(`"size":${image.config.length}`, `"size":${config.length}`),
  );
  return { ...image, manifest, digest: digestOf(manifest), blobs: new Map(image.blobs).set(digestOf(config), config) };
}

/** Its config names the hash of another layer. */
function lying() {
  const honest = makeImage([tar(file("x"))]);
  const config = Buffer.from(honest.config.toString().replace(/sha256:\w+/, digestOf(rootfs)));
  const manifest = Buffer.from(honest.manifest.toString().replace(digestOf(honest.config), digestOf(config)));
  return {
    ...honest,
    manifest,
    digest: digestOf(manifest),
    blobs: new Map(honest.blobs).set(digestOf(config), config),
  };
}

suite("image removal and clean-up", { skip: NOT_ROOT }, () => {
  test("images held by machines are neither removed nor collected; the preview agrees with the clean-up", async (t) => {
    const images = await openStore(t);
    await bring(images, "a:1", ociArchive(makeImage([layers[0] ?? Buffer.alloc(0)])));
    await bring(images, "b:1", ociArchive(makeImage(layers)));
    await hold(images, "b:1", "org-a", "m1");
    const held = await refused(images.remove("b:1", PLATFORM));
    assert.deepEqual([held.code, held.extras.facts], ["image_in_use", { machines: ["m1"] }]);
    await images.remove("a:1", PLATFORM);
    assert.equal(readdirSync(join(images.dir, "layers")).length, 4, "the other image needs its layer");
    await images.release("m1");
    // Replaced by a second import: the old content has no name, and stays only for the hour that `all` ignores.
    await bring(images, "b:1", rootfs);
    assert.deepEqual((await images.collect({ dry_run: true, all: false })).layers, []);
    const preview = await images.collect({ dry_run: true, all: true });
    assert.deepEqual([preview.layers.length, preview.dry_run], [2, true]);
    assert.equal(readdirSync(join(images.dir, "layers")).length, 6);
    const done = await images.collect({ dry_run: false, all: true });
    assert.deepEqual({ ...done, dry_run: true }, preview);
    assert.equal(readdirSync(join(images.dir, "layers")).length, 2);
    assert.equal(readdirSync(join(images.dir, "blobs")).length, 2);
    assert.deepEqual((await images.collect({ dry_run: false, all: true })).layers, [], "imported names stay");
  });

  test("images survive a restart; leftovers of a crash are removed", async (t) => {
    const base = tempStore(t);
    const first = await openStore(t, { dir: base });
    await bring(first, "a:1", rootfs, "org-a");
    const { ref, layers: folders } = await hold(first, "a:1", "org-a");
    await first.close();
    const at = (path: string): string => join(base, "images", path);
    // A folder without a record, a record without a folder, unfinished files, a partial download.
    mkdirSync(at(`layers/${"1".repeat(64)}`));
    writeFileSync(at(`layers/${"2".repeat(64)}.json`), "{}");
    mkdirSync(at("ingest/tree-x/deep"), { recursive: true });
    writeFileSync(at("ingest/file-x"), "{");
    writeFileSync(at("ingest/part-new"), "part");
    writeFileSync(at("ingest/part-old"), "part");
    utimesSync(at("ingest/part-old"), 1000, 1000);
    writeFileSync(at("holds/broken.json"), "{");
    const second = await openStore(t, { dir: base });
    assert.deepEqual(readdirSync(at("ingest")), ["part-new"]);
    assert.equal(readdirSync(at("layers")).length, 2);
    assert.deepEqual((await second.hold({ id: "m1", org_id: "org-a" }, ref, NEVER)).layers, folders);
    assert.equal((await second.list("org-a"))[0]?.machines, 1);
    assert.equal((await refused(second.remove("a:1", "org-a"))).code, "image_in_use");
  });

  test("an image whose layers are missing is reported instead of booted", async (t) => {
    const base = tempStore(t);
    const first = await openStore(t, { dir: base });
    await bring(first, "a:1", rootfs);
    const ref = await first.resolve("a:1", "org-a", NEVER);
    await first.close();
    rmSync(join(base, "images/layers"), { recursive: true });
    const images = await openStore(t, { dir: base });
    const error = await refused(images.hold({ id: "m1", org_id: "org-a" }, ref, NEVER));
    assert.deepEqual([error.code, /not stored here/.test(error.message)], ["image_not_found", true]);
    assert.match(error.extras.hint ?? "", /images import/);
  });

  test("an opaque root hides the layers below it", async (t) => {
    const images = await openStore(t);
    await bring(
      images,
      "o:1",
      ociArchive(makeImage([...layers, tar(file(".wh..wh..opq", ""), file("only")), tar(file("top"))])),
    );
    const held = await hold(images, "o:1", "org-a");
    assert.deepEqual(
      held.layers.map((folder) => readdirSync(folder)),
      [["only"], ["top"]],
    );
  });

  test("hangar/hello is built from this box's Node, once", async (t) => {
    const images = await openStore(t);
    const [ref, same] = await Promise.all([
      images.resolve("hangar/hello", "org-a", NEVER),
      images.resolve("hangar/hello:latest", "org-b", NEVER),
    ]);
    assert.equal(ref.digest, same.digest);
    const { layers: folders, config } = await images.hold({ id: "m", org_id: "org-a" }, ref, NEVER);
    const root = folders[0] ?? "";
    assert.deepEqual([config.entrypoint, config.cmd], [[], ["/usr/bin/node", "/hello/server.mjs"]]);
    assert.match(readFileSync(join(root, "hello/server.mjs"), "utf8"), /createServer/);
    assert.equal((await images.show("hangar/hello", "org-b")).source, "built-in");
  });
});
