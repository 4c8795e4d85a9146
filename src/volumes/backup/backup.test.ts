/** What is stored comes back byte for byte; what did not change is stored once; damage is noticed. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import type { ObjectStore } from "#core/objects.ts";
import { LocalObjects } from "#stores/objects/local.ts";
import { random, seed, tempDir } from "../../../test/support.ts";
import type { Extent, ImageReader } from "../disk.ts";
import { VOLUME_LIMITS } from "../limits.ts";
import { decodeManifest, digestOf, encodeManifest, type Manifest } from "./manifest.ts";
import { manifestKey, PACKS, packKey } from "./names.ts";
import { DamagedSnapshot, readManifest, restoreImage } from "./restore-image.ts";
import { storeImage } from "./store-image.ts";

const BLOCK = VOLUME_LIMITS.block_bytes;
const never = new AbortController().signal;
const quiet = (): void => {};

function imageOf(bytes: Buffer, extents: Extent[] = [{ offset: 0, length: bytes.length }]): ImageReader {
  return {
    size: bytes.length,
    extents,
    read: async (offset, length) => Buffer.from(bytes.subarray(offset, offset + length)),
    [Symbol.asyncDispose]: async () => {},
  };
}

async function keep(objects: ObjectStore, id: string, bytes: Buffer, base?: Manifest, compress = true) {
  const job = { snapshot_id: id, image: imageOf(bytes), objects, base, compress, signal: never, onProgress: quiet };
  return await storeImage(job);
}

async function back(objects: ObjectStore, id: string, digest?: string): Promise<Buffer> {
  const manifest = await readManifest(objects, id, digest);
  const image = Buffer.alloc(manifest.image_bytes);
  const write = async (offset: number, bytes: Uint8Array): Promise<void> => image.set(bytes, offset);
  await restoreImage({ manifest, objects, image: { write }, signal: never, onProgress: quiet });
  return image;
}

const open = (): LocalObjects => new LocalObjects(tempDir());

/** Noise with runs of zeros and repeated blocks in it. */
function noise(next: () => number, blocks: number): Buffer {
  const bytes = Buffer.alloc(blocks * BLOCK - Math.floor(next() * 2) * 4096);
  for (let i = 0; i < blocks; i++) {
    const kind = next();
    if (kind < 0.3) continue;
    const value = kind < 0.5 ? 7 : Math.floor(next() * 2 ** 32);
    for (let at = i * BLOCK; at + 4 <= Math.min((i + 1) * BLOCK, bytes.length); at += 4) {
      bytes.writeUInt32LE((value * (at + 1)) >>> 0, at);
    }
  }
  return bytes;
}

suite("volume snapshots in packs", () => {
  test("every snapshot of a chain is restored unchanged, and shares unchanged blocks with its base", async (t) => {
    const next = random(seed(t));
    const objects = open();
    let bytes = noise(next, 40);
    let base: Manifest | undefined;
    const kept: { id: string; bytes: Buffer; digest: string }[] = [];
    for (let i = 0; i < 6; i++) {
      const id = `vs_${i}`;
      const stored = await keep(objects, id, bytes, base);
      kept.push({ id, bytes: Buffer.from(bytes), digest: stored.digest });
      if (i > 0) assert.ok(stored.stored <= 2 * BLOCK, `${stored.stored} bytes were stored for one changed block`);
      base = await readManifest(objects, id);
      bytes = Buffer.from(bytes);
      bytes.writeUInt32LE(i + 1, Math.floor(next() * (bytes.length / 4096)) * 4096);
    }
    for (const one of kept) assert.ok((await back(objects, one.id, one.digest)).equals(one.bytes), one.id);
    const same = await keep(objects, "vs_same", kept[5]?.bytes ?? bytes, base);
    assert.deepEqual([same.stored, same.digest], [0, kept[5]?.digest]);
  });

  test("zero blocks take no space, a second attempt overwrites the first, an aborted one fails", async () => {
    const objects = open();
    const empty = await keep(objects, "vs_e", Buffer.alloc(10 * BLOCK));
    assert.deepEqual([empty.size, empty.stored, empty.packs], [0, 0, []]);
    assert.ok((await back(objects, "vs_e")).equals(Buffer.alloc(10 * BLOCK)));
    const bytes = Buffer.alloc(3 * BLOCK, "x");
    const first = await keep(objects, "vs_a", bytes);
    assert.deepEqual(await keep(objects, "vs_a", bytes), first);
    const image = imageOf(bytes);
    const job = { snapshot_id: "vs_b", image, objects, base: undefined, compress: true, onProgress: quiet };
    await assert.rejects(storeImage({ ...job, signal: AbortSignal.abort(new Error("stop")) }), /stop/);
  });

  test("packs that are mostly garbage are not reused by the next snapshot", async (t) => {
    const objects = open();
    const next = random(seed(t));
    const bytes = Buffer.alloc(10 * BLOCK);
    for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE((next() * 2 ** 32) >>> 0, at);
    await keep(objects, "vs_1", bytes, undefined, false);
    // Eight of ten blocks change: the next snapshot still uses the old pack for two, the one after that does not.
    const changed = Buffer.from(bytes);
    for (let at = 0; at < 8 * BLOCK; at += 4) changed.writeUInt32LE((next() * 2 ** 32) >>> 0, at);
    const second = await keep(objects, "vs_2", changed, await readManifest(objects, "vs_1"), false);
    assert.deepEqual(second.packs.toSorted(), ["vs_1-0", "vs_2-0"]);
    const third = await keep(objects, "vs_3", changed, await readManifest(objects, "vs_2"), false);
    assert.deepEqual(third.packs.toSorted(), ["vs_2-0", "vs_3-0"]);
    assert.equal(third.stored, 2 * BLOCK);
    assert.ok((await back(objects, "vs_3")).equals(changed));
  });

  test("a missing pack, a changed byte and a changed list are detected", async () => {
    const objects = open();
    const bytes = noise(random(5), 20);
    const { digest, packs } = await keep(objects, "vs_d", bytes);
    await assert.rejects(back(objects, "vs_none"), DamagedSnapshot);
    await assert.rejects(back(objects, "vs_d", `sha256:${"0".repeat(64)}`), DamagedSnapshot);
    const [pack = ""] = packs;
    const whole = (await objects.get(packKey(pack))) ?? Buffer.alloc(0);
    const bent = Buffer.from(whole);
    bent.writeUInt8((bent.readUInt8(100) + 1) % 256, 100);
    await objects.put(packKey(pack), bent);
    await assert.rejects(back(objects, "vs_d", digest), DamagedSnapshot);
    await objects.delete((await objects.list(PACKS)).map(({ key }) => key));
    await assert.rejects(back(objects, "vs_d", digest), DamagedSnapshot);
    await objects.put(packKey(pack), whole);
    assert.ok((await back(objects, "vs_d", digest)).equals(bytes));
    const list = (await objects.get(manifestKey("vs_d"))) ?? Buffer.alloc(0);
    for (const damaged of [Buffer.alloc(0), Buffer.from("no list"), list.subarray(0, -9)]) {
      await objects.put(manifestKey("vs_d"), damaged);
      await assert.rejects(back(objects, "vs_d", digest), DamagedSnapshot);
    }
  });

  test("a manifest survives encoding unchanged", () => {
    const entry = fc.record(
      {
        index: fc.nat(0xffffffff),
        pack: fc.nat(1000),
        offset: fc.nat(0xffffff),
        length: fc.nat(BLOCK),
        compressed: fc.boolean(),
        hash: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex")),
      },
      { noNullPrototype: true },
    );
    const packs = fc.array(
      fc.record({ name: fc.stringMatching(/^[a-z0-9_-]{1,20}$/), bytes: fc.nat() }, { noNullPrototype: true }),
    );
    fc.assert(
      fc.property(fc.array(entry), packs, fc.nat(), (entries, list, image_bytes) => {
        const manifest: Manifest = { image_bytes, block_bytes: BLOCK, packs: list, entries };
        const again = decodeManifest(encodeManifest(manifest));
        assert.deepEqual(again, manifest);
        assert.equal(digestOf(again), digestOf(manifest));
      }),
      { numRuns: 50 },
    );
  });
});
