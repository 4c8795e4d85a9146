/** Decompression bombs, and disk quotas of organizations. */
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { suite, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import { file, forged, makeImage, NEVER, NOT_ROOT, openStore, pieces, tar } from "./fixtures.ts";
import type { Images } from "./images.ts";
import { testRegistry } from "./registry/fixtures.ts";

const MIB = 2 ** 20;
const noise = (bytes: number, from: number): string =>
  Array.from({ length: bytes / 8 }, (_, i) =>
    (((i + from) * 2654435761) % 99999989).toString(36).padStart(8, "z"),
  ).join("");
const layer = (n: number, bytes = MIB): Buffer => tar(file(`file-${n}`, noise(bytes, n * 7919)));

/** Bytes of files below a folder. */
function onDisk(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

const bring = (images: Images, n: number | string, bytes: Buffer, owner = "org-a") =>
  images.import(`app:${n}`, pieces(bytes), owner, NEVER);

suite("disk quota of images", { skip: NOT_ROOT }, () => {
  for (const [name, pack] of Object.entries({ gzip: gzipSync, zstd: zstdCompressSync })) {
    test(`a decompression bomb is stopped while it is unpacked (${name})`, async (t) => {
      const limits = { ratio: 50, ratio_from_bytes: 2 * MIB };
      const images = await openStore(t, { limits });
      // Says that it holds 20 GiB, and sends the first 64 MiB of it.
      const large = Buffer.concat([
        forged(file("zeroes"), (header) => header.write("240000000000", 124)).subarray(0, 512),
        Buffer.alloc(64 * MIB),
      ]);
      const bomb = pack(large);
      assert.ok(bomb.length < 0.1 * MIB);
      const before = onDisk(images.dir);
      let most = 0;
      async function* watched(): AsyncGenerator<Buffer> {
        for await (const piece of pieces(bomb, 1000)) {
          yield piece;
          most = Math.max(most, onDisk(images.dir));
        }
      }
      await assert.rejects(images.import("bomb:1", watched(), PLATFORM, NEVER), {
        code: "image_refused",
        message: /grows to more than 50 times its size \(limit ratio\)/,
      });
      assert.ok(most - before < 8 * MIB, `${most - before} bytes were written`);
      assert.equal(onDisk(images.dir), before, "nothing of it stays");
    });
  }

  test("an upload that declares more bytes than it has is refused as truncated", async (t) => {
    const images = await openStore(t);
    const said = forged(file("large", "x".repeat(512)), (header) => header.write("240000000000", 124));
    await assert.rejects(bring(images, 1, said), { code: "image_refused" });
    assert.deepEqual(readdirSync(join(images.dir, "ingest")), []);
  });

  test("an upload leaves disk_kept_bytes free on the disk", async (t) => {
    const images = await openStore(t, { limits: { disk_kept_bytes: 2 ** 60 } });
    await assert.rejects(bring(images, 1, layer(1)), { code: "storage_full", message: /limit disk_kept_bytes/ });
  });

  test("an organization's imports stop at its quota; other organizations and the platform are not affected", async (t) => {
    const images = await openStore(t, { limits: { org_image_bytes: 5 * MIB } });
    for (const n of [1, 2, 3]) await bring(images, n, layer(n));
    const refusal = { code: "limit_reached", message: /setting image_quota_gb/ };
    await assert.rejects(bring(images, 4, layer(4)), refusal);
    assert.deepEqual(readdirSync(join(images.dir, "ingest")), []);
    await bring(images, 4, layer(4), "org-b");
    await bring(images, 4, layer(4), PLATFORM);
    for (const n of [10, 11, 12, 13, 14, 15]) await bring(images, n, layer(n), PLATFORM);
    await images.remove("app:1", "org-a");
    await bring(images, 5, layer(5));
  });

  test("layers already stored for others count in the quota of the importer, too", async (t) => {
    const images = await openStore(t, { limits: { org_image_bytes: 4 * MIB } });
    for (const n of [1, 2, 3]) await bring(images, n, layer(n), `org-${n}`);
    const packed = (n: number): Buffer => zstdCompressSync(layer(n));
    for (const n of [1, 2]) await bring(images, n, packed(n));
    await assert.rejects(bring(images, 3, packed(3)), { code: "limit_reached" });
  });

  test("concurrent uploads share one quota", async (t) => {
    const images = await openStore(t, { limits: { org_image_bytes: 12 * MIB } });
    const outcomes = await Promise.allSettled([1, 2, 3, 4, 5, 6].map((n) => bring(images, n, layer(n, 5 * MIB))));
    const refused = outcomes.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
    assert.ok(refused.length >= 4, `${refused.length} were refused`);
    for (const { reason } of refused) assert.equal((reason as { code?: string }).code, "limit_reached");
  });

  test("many small files count by the disk space they take", async (t) => {
    const images = await openStore(t, { limits: { org_image_bytes: 4 * MIB } });
    const many = tar(...Array.from({ length: 2000 }, (_, n) => file(`f${n}`, "")));
    await assert.rejects(bring(images, 1, gzipSync(many)), { code: "limit_reached" });
    assert.equal(onDisk(join(images.dir, "layers")), 0);
  });

  test("manifests and configs count in the quota before they are written, and again after a restart", async (t) => {
    const registry = await testRegistry(t);
    const settings = { allow_private: [registry.host], limits: { org_image_bytes: 4 * MIB } };
    const images = await openStore(t, settings);
    const image = (n: number): string =>
      registry.serve("web", String(n), makeImage([layer(0, 8)], { Labels: { note: noise(MIB, n * 7919) } }));
    const refusal = { code: "limit_reached", message: /setting image_quota_gb/ };
    for (const n of [1, 2, 3]) await images.resolve(image(n), "org-a", NEVER);
    const before = onDisk(images.dir);
    await assert.rejects(images.resolve(image(4), "org-a", NEVER), refusal);
    assert.equal(onDisk(images.dir), before, "nothing of it is written");
    await images.resolve(image(3), "org-a", NEVER);
    await images.resolve(image(4), "org-b", NEVER);
    await images.close();
    const again = await openStore(t, { ...settings, dir: dirname(images.dir) });
    await assert.rejects(again.resolve(image(5), "org-a", NEVER), refusal);
  });

  test("a pull stops at the quota before its first layer byte, and layer bombs while they are unpacked", async (t) => {
    const registry = await testRegistry(t);
    const images = await openStore(t, { allow_private: [registry.host], limits: { org_image_bytes: 4 * MIB } });
    const start = async (name: string, id: string) =>
      await images.hold({ id, org_id: "org-a" }, await images.resolve(name, "org-a", NEVER), NEVER);
    await start(registry.serve("web", "1", makeImage([layer(1)])), "m1");
    const large = registry.serve("web", "2", makeImage([layer(2, 6 * MIB)]));
    const before = registry.seen.length;
    await assert.rejects(start(large, "m2"), { code: "limit_reached", message: /setting image_quota_gb/ });
    const fetched = registry.seen.slice(before).filter(({ path }) => path.includes("/blobs/"));
    assert.equal(fetched.length, 1, "the config alone");
    const bomb = registry.serve("web", "3", makeImage([tar(file("zeroes", "\0".repeat(8 * MIB)))], {}, gzipSync));
    await assert.rejects(start(bomb, "m3"), { code: "limit_reached" });
    assert.ok(onDisk(images.dir) < 4 * MIB);
  });
});
