/** What an organization may keep in the registry: manifests count as blobs do. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { anOrg } from "#auth/fixtures.ts";
import { systemClock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import { readSettings } from "#core/settings.ts";
import { migrate } from "#stores/migrate.ts";
import { openObjects } from "#stores/objects/open.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlRegistryStore } from "#stores/sql/registry.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { tempDir } from "../../test/support.ts";
import { BlobBytes } from "./bytes.ts";
import { REGISTRY_LIMITS, type RegistryLimits } from "./limits.ts";
import { Registry } from "./service.ts";
import { Uploads } from "./uploads.ts";

const digestOf = (bytes: Uint8Array | string): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
const AT = { org_id: "o1", repository: "web", full: "one/web" };
const INDEX = "application/vnd.oci.image.index.v1+json";

const manifestOf = (more: object): { document: Buffer; digest: string; content_type: string } => {
  const document = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [], ...more }));
  return { document, digest: digestOf(document), content_type: INDEX };
};

async function open(t: TestContext, changed: Partial<RegistryLimits>): Promise<Registry> {
  const dir = tempDir();
  const database = inlineSqlite();
  t.after(async () => {
    await database.close();
    rmSync(dir, { recursive: true, force: true });
  });
  await migrate(database);
  await sqlAuthStore(database).insertOrg(anOrg({ id: "o1", slug: "one" }), 10);
  const limits = { ...REGISTRY_LIMITS, ...changed };
  const objects = await openObjects(readSettings([], {}).objects, join(dir, "objects"), systemClock);
  const bytes = new BlobBytes({ objects, node_id: "n1", temporary: () => join(dir, "sent"), remote: undefined });
  const store = sqlRegistryStore(database);
  const left = async (org_id: string): Promise<number> =>
    limits.org_bytes - (await store.usedBytes(org_id)) - uploads.bytes(org_id);
  const ids = randomIds(systemClock);
  const uploads: Uploads = await Uploads.open({ dir: join(dir, "uploads"), clock: systemClock, ids, limits, left });
  return new Registry({ store, bytes, uploads, clock: systemClock, limits, users: async () => [] });
}

async function push(registry: Registry, bytes: string): Promise<void> {
  const upload = await registry.begin(AT);
  await registry.append(
    upload,
    (async function* () {
      yield Buffer.from(bytes);
    })(),
  );
  await registry.finish(upload, digestOf(bytes));
}

suite("registry quotas", () => {
  test("manifests take of the organization's bytes, and are refused when none are left", async (t) => {
    const registry = await open(t, { org_bytes: 5000 });
    const put = async (i: number) =>
      await registry.putManifest(AT, { tag: String(i) }, manifestOf({ padding: `${i}${"x".repeat(2000)}` }));
    await put(1);
    await put(2);
    await put(2);
    await assert.rejects(put(3), { code: "limit_reached", message: /image_quota_gb/ });
  });

  test("an organization has so many blobs and manifests, and a repository so many tags, and no more", async (t) => {
    const registry = await open(t, { blobs_per_org: 3, tags_per_repository: 2 });
    await push(registry, "a");
    await push(registry, "b");
    const manifest = manifestOf({});
    for (const tag of ["1", "2", "2"]) await registry.putManifest(AT, { tag }, manifest);
    const another = registry.putManifest(AT, { tag: "3" }, manifest);
    await assert.rejects(another, { code: "limit_reached", message: /tags_per_repository/ });
    const full = { code: "limit_reached", message: /blobs_per_org/ };
    await assert.rejects(push(registry, "c"), full);
    await assert.rejects(registry.putManifest(AT, { tag: "2" }, manifestOf({ more: true })), full);
    await push(registry, "a");
  });

  test("large annotations of a referrer are refused, those of an image are not, and referrers come in pages", async (t) => {
    const registry = await open(t, {});
    const large = "x".repeat(REGISTRY_LIMITS.annotations_bytes);
    const image = manifestOf({ annotations: { large } });
    await registry.putManifest(AT, { tag: "1" }, image);
    const subject = { mediaType: INDEX, digest: image.digest, size: image.document.length };
    const attach = async (more: object): Promise<string> => {
      const manifest = manifestOf({ subject, ...more });
      await registry.putManifest(AT, { digest: manifest.digest }, manifest);
      return manifest.digest;
    };
    const invalid = { code: "manifest_invalid" };
    await assert.rejects(attach({ annotations: { large } }), { ...invalid, message: /annotations_bytes/ });
    await assert.rejects(attach({ artifactType: `a/${large}` }), { ...invalid, message: /artifact type/ });
    const all = await Promise.all(["a", "b", "c"].map(async (note) => await attach({ annotations: { note } })));
    const first = await registry.referrers(AT, image.digest, { last: "", limit: 2 });
    const rest = await registry.referrers(AT, image.digest, { last: first.at(-1)?.digest ?? "", limit: 2 });
    assert.equal(first.length, 2);
    assert.deepEqual(new Set([...first, ...rest].map(({ digest }) => digest)), new Set(all));
  });

  test("a manifest has a media type that no browser shows", async (t) => {
    const registry = await open(t, {});
    for (const mediaType of ["text/html", "image/svg+xml", "application/xhtml+xml", "application/xml"]) {
      const manifest = { ...manifestOf({ mediaType }), content_type: mediaType };
      await assert.rejects(registry.putManifest(AT, { tag: "1" }, manifest), { code: "manifest_invalid" });
    }
  });
});
