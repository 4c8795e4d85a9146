import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import { tempDir } from "../../test/support.ts";
import { REGISTRY_LIMITS, type RegistryLimits } from "./limits.ts";
import { Uploads } from "./uploads.ts";

async function open(
  dir: string,
  limits: Partial<RegistryLimits> = {},
  left = Number.MAX_SAFE_INTEGER,
): Promise<Uploads> {
  const uploads: Uploads = await Uploads.open({
    dir,
    clock: systemClock,
    ids: randomIds(systemClock),
    limits: { ...REGISTRY_LIMITS, ...limits },
    left: async (org_id) => left - uploads.bytes(org_id),
  });
  return uploads;
}

async function* pieces(...all: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* all;
}

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

suite("blob uploads", () => {
  test("an upload resumes after a restart, and its digest covers all bytes", async () => {
    const dir = tempDir();
    const bytes = randomBytes(1000);
    const first = await open(dir);
    const { id } = await first.begin("o1", "web");
    await first.append(first.find(id, "o1", "web"), pieces(bytes.subarray(0, 400)));
    const again = await open(dir);
    const upload = again.find(id, "o1", "web");
    assert.equal(upload.size, 400);
    await again.append(upload, pieces(bytes.subarray(400)), 400);
    const taken = await again.finish(upload, digestOf(bytes), async (file) => readFileSync(file));
    assert.deepEqual(taken, bytes);
    assert.deepEqual(readdirSync(dir), []);
  });

  test("a client that disconnects in the middle of a chunk resumes after the bytes that arrived", async () => {
    const uploads = await open(tempDir());
    const upload = await uploads.begin("o1", "web");
    const bytes = randomBytes(900);
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield bytes.subarray(0, 300);
      throw new Error("the client left");
    }
    await assert.rejects(uploads.append(upload, broken()), /the client left/);
    assert.equal(upload.size, 300);
    await uploads.append(upload, pieces(bytes.subarray(300)), 300);
    await uploads.finish(upload, digestOf(bytes), async () => {});
  });

  test("an upload belongs to its repository and organization", async () => {
    const uploads = await open(tempDir());
    const { id } = await uploads.begin("o1", "web");
    for (const [org_id, repository] of [
      ["o2", "web"],
      ["o1", "api"],
    ] as const)
      assert.throws(() => uploads.find(id, org_id, repository), /no such upload/);
  });

  test("the quota, the blob size and the number of uploads are limited", async () => {
    const uploads = await open(tempDir(), { blob_bytes: 2000, uploads_per_org: 2 }, 1500);
    const upload = await uploads.begin("o1", "web");
    await assert.rejects(uploads.append(upload, pieces(randomBytes(2001))), /limit blob_bytes/);
    await assert.rejects(uploads.append(upload, pieces(randomBytes(1501))), /image_quota_gb/);
    await uploads.append(upload, pieces(randomBytes(1000)));
    const second = await uploads.begin("o1", "web");
    await assert.rejects(uploads.append(second, pieces(randomBytes(600))), /image_quota_gb/);
    await assert.rejects(uploads.begin("o1", "web"), /uploads_per_org/);
    await uploads.begin("o2", "web");
    await uploads.cancel(upload);
    await uploads.append(second, pieces(randomBytes(600)));
  });

  test("idle uploads are removed, with leftovers of a kill", async () => {
    const dir = tempDir();
    const uploads = await open(dir, { upload_kept_ms: -1000 });
    await uploads.begin("o1", "web");
    await uploads.expire();
    assert.deepEqual(readdirSync(dir), []);
  });
});
