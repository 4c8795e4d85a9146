/** The rules of the registry: what is stored, what is needed, what may go. Knows no HTTP. */
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { BlobBytes } from "./bytes.ts";
import type { RegistryLimits } from "./limits.ts";
import { readManifest } from "./manifest.ts";
import type { Reference } from "./paths.ts";
import type { RegistryStore } from "./store.ts";
import type { NamePage, Repository, RepositoryBlob, RepositoryManifest, RepositoryTag } from "./types.ts";
import type { Upload, Uploads } from "./uploads.ts";

/** A repository of an organization; `full` is its display name. */
export interface RepositoryAt {
  org_id: string;
  repository: string;
  full: string;
}

/** Users of an image: machines by id, releases by name. */
export type ImageUsers = (digests: readonly string[], org_id: string) => Promise<string[]>;

export interface RegistryParts {
  store: RegistryStore;
  bytes: BlobBytes;
  uploads: Uploads;
  clock: Clock;
  limits: RegistryLimits;
  users: ImageUsers;
}

const TAGS_AT_ONCE = 100;

export class Registry {
  readonly #parts: RegistryParts;

  constructor(parts: RegistryParts) {
    this.#parts = parts;
  }

  get limits(): RegistryLimits {
    return this.#parts.limits;
  }

  async blob({ org_id, repository, full }: RepositoryAt, digest: string): Promise<RepositoryBlob> {
    return (
      (await this.#parts.store.findBlob(org_id, repository, digest)) ??
      fail("blob_unknown", `${full} has no blob ${digest}`)
    );
  }

  read(
    blob: RepositoryBlob,
    range: { offset: number; length: number },
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    return this.#parts.bytes.read(blob, range, signal);
  }

  async begin({ org_id, repository }: RepositoryAt): Promise<Upload> {
    return await this.#parts.uploads.begin(org_id, repository);
  }

  upload({ org_id, repository }: RepositoryAt, id: string): Upload {
    return this.#parts.uploads.find(id, org_id, repository);
  }

  async append(upload: Upload, chunk: AsyncIterable<Uint8Array>, start?: number): Promise<void> {
    await this.#parts.uploads.append(upload, chunk, start);
  }

  async cancel(upload: Upload): Promise<void> {
    await this.#parts.uploads.cancel(upload);
  }

  /** Turns the upload into a blob of its repository. */
  async finish(upload: Upload, digest: string): Promise<RepositoryBlob> {
    const { store, uploads, bytes, clock } = this.#parts;
    const { org_id, repository, size } = upload;
    return await uploads.finish(upload, digest, async (file) => {
      const now = clock.now();
      const there = await store.findOrgBlob(org_id, digest);
      // A blob that the organization already has in another repository is stored once.
      const shared = there && (await store.mountBlob(org_id, digest, there.repository, repository, now));
      if (shared) return shared;
      await this.#refuseFull(org_id, 0);
      const key = BlobBytes.key(digest, now);
      await bytes.put(key, { file });
      const { node_id } = bytes;
      const kept = await store.putBlob({ org_id, repository, digest, size, key, node_id, touched_at: now });
      if (kept.key !== key) await bytes.remove([{ key, node_id }]);
      return kept;
    });
  }

  /** A repository of the organization that has the blob. */
  async holderOf(org_id: string, digest: string): Promise<string | undefined> {
    return (await this.#parts.store.findOrgBlob(org_id, digest))?.repository;
  }

  /**
   * Mounts a blob of another repository of the organization. Undefined when it does not exist: then it must be
   * uploaded.
   */
  async mount(at: RepositoryAt, digest: string, from: string): Promise<RepositoryBlob | undefined> {
    const { store, clock } = this.#parts;
    return await store.mountBlob(at.org_id, digest, from, at.repository, clock.now());
  }

  async deleteBlob({ org_id, repository, full }: RepositoryAt, digest: string): Promise<void> {
    const { store, bytes } = this.#parts;
    const blob = await store.findBlob(org_id, repository, digest);
    const removed = await store.deleteBlob(org_id, repository, digest);
    if (removed === "referenced") {
      fail("image_in_use", `a manifest of ${full} needs blob ${digest}`, {
        hint: "delete the manifest; its blobs are removed a day later",
      });
    }
    if (!removed || !blob) fail("blob_unknown", `${full} has no blob ${digest}`);
    if (removed.unused_key !== undefined) await bytes.remove([{ key: removed.unused_key, node_id: blob.node_id }]);
  }

  async manifest(at: RepositoryAt, reference: Reference): Promise<RepositoryManifest> {
    const { store } = this.#parts;
    const { org_id, repository } = at;
    const digest = reference.digest ?? (await store.findTag(org_id, repository, reference.tag));
    const found = digest === undefined ? undefined : await store.findManifest(org_id, repository, digest);
    return found ?? manifestUnknown(at, reference);
  }

  /** The bytes of a manifest. */
  async document(at: RepositoryAt, digest: string, signal: AbortSignal): Promise<Buffer> {
    const blob = await this.blob(at, digest);
    const pieces: Uint8Array[] = [];
    for await (const piece of this.read(blob, { offset: 0, length: blob.size }, signal)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** Stores a manifest whose blobs all exist; with a tag, points the tag to it. */
  async putManifest(
    at: RepositoryAt,
    reference: Reference,
    { document, digest, content_type }: { document: Uint8Array; digest: string; content_type: string | undefined },
  ): Promise<RepositoryManifest> {
    if (reference.digest !== undefined && reference.digest !== digest)
      fail("digest_invalid", `the manifest's digest is ${digest}, not ${reference.digest}`);
    const { store, bytes, clock, limits } = this.#parts;
    const { blobs, manifests, ...facts } = readManifest(document, content_type, limits);
    const { org_id, repository, full } = at;
    await this.#refuseMissing(at, blobs, manifests);
    const [now, size, node_id] = [clock.now(), document.length, bytes.node_id];
    const before = await store.findBlob(org_id, repository, digest);
    if (!before) await this.#refuseFull(org_id, size);
    if (reference.tag !== undefined) await this.#refuseTags(at, reference.tag);
    const key = before?.key ?? BlobBytes.key(digest, now);
    if (!before) await bytes.put(key, document);
    const blob = before ?? { org_id, repository, digest, size, key, node_id, touched_at: now };
    const manifest = { org_id, repository, digest, size, ...facts, touched_at: now };
    const write = { manifest, blob: { ...blob, touched_at: now }, tag: reference.tag, blobs, manifests };
    if (await store.putManifest(write)) return manifest;
    if (!before) await bytes.remove([{ key, node_id }]);
    fail("manifest_blob_unknown", `something that the manifest names was deleted from ${full} meanwhile; push again`);
  }

  /** Deletes a tag, or a manifest with its tags unless it is in use. */
  /** Removes the tags of a repository; manifests and blobs that nothing needs go with the next clean-up. */
  async deleteTags(org_id: string, repository: string): Promise<void> {
    const { store } = this.#parts;
    for (;;) {
      const tags = await store.tags(org_id, repository, { last: "", limit: TAGS_AT_ONCE });
      for (const { tag } of tags) await store.deleteTag(org_id, repository, tag);
      if (tags.length < TAGS_AT_ONCE) return;
    }
  }

  async deleteManifest(at: RepositoryAt, reference: Reference): Promise<void> {
    const { store } = this.#parts;
    const { org_id, repository } = at;
    if (reference.tag !== undefined) {
      if (await store.deleteTag(org_id, repository, reference.tag)) return;
      manifestUnknown(at, reference);
    }
    await this.manifest(at, reference);
    const users = await this.#users(at, reference.digest);
    if (users.length > 0) {
      fail("image_in_use", `${at.full}@${reference.digest} is needed by ${users.slice(0, 3).join(", ")}`, {
        facts: { users },
        hint: "destroy or update the machines; the newest releases of an app need their images for a rollback",
      });
    }
    if (!(await store.deleteManifest(org_id, repository, reference.digest))) manifestUnknown(at, reference);
  }

  /** Fails when the repository does not exist. */
  async tags(at: RepositoryAt, page: NamePage): Promise<{ tag: string; digest: string }[]> {
    const { store } = this.#parts;
    const found = await store.tags(at.org_id, at.repository, page);
    if (found.length > 0 || (await store.hasRepository(at.org_id, at.repository))) return found;
    fail("name_unknown", `there is no repository ${at.full}`);
  }

  /** Those after the digest `last`, in pages. */
  async referrers(
    { org_id, repository }: RepositoryAt,
    subject: string,
    page: NamePage,
  ): Promise<RepositoryManifest[]> {
    return await this.#parts.store.referrers(org_id, repository, subject, page);
  }

  async repositories(org_id: string, page: NamePage): Promise<Repository[]> {
    return await this.#parts.store.repositories(org_id, page);
  }

  /** The first `limit` tags of each repository on the page. */
  async tagsOfEach(org_id: string, page: NamePage, limit: number): Promise<RepositoryTag[]> {
    return await this.#parts.store.tagsOfEach(org_id, page, limit);
  }

  /** Removes unused data. Returns the number of freed bytes. */
  async collect(): Promise<{ manifests: number; blobs: number; bytes: number }> {
    const { store, bytes, clock, limits, uploads } = this.#parts;
    await uploads.expire();
    const now = clock.now();
    let manifests = 0;
    for (const { org_id, repository, digest } of await store.untagged(
      now - limits.untagged_kept_ms,
      limits.collect_rows,
    )) {
      const at = { org_id, repository, full: repository };
      if ((await this.#users(at, digest)).length > 0) continue;
      if (await store.deleteManifest(org_id, repository, digest)) manifests++;
    }
    const removed = await store.collectBlobs(now - limits.blob_kept_ms, limits.collect_rows);
    await bytes.remove(removed);
    await this.#collectOrphans(now);
    return { manifests, blobs: removed.length, bytes: removed.reduce((sum, { size }) => sum + size, 0) };
  }

  /** Objects without a row: left by a crash, or of a deleted organization. */
  async #collectOrphans(now: number): Promise<void> {
    const { store, bytes, limits } = this.#parts;
    const all = (await bytes.objects.list("blobs/")).map(({ key }) => key);
    const old = all.filter((key) => BlobBytes.madeAt(key) < now - limits.blob_kept_ms);
    for (let at = 0; at < old.length; at += limits.collect_rows) {
      const some = old.slice(at, at + limits.collect_rows);
      const known = await store.knownKeys(some);
      await bytes.objects.delete(some.filter((key) => !known.has(key)));
    }
  }

  /** Room for one more blob or manifest, of these bytes. */
  async #refuseFull(org_id: string, coming: number): Promise<void> {
    const { store, uploads, limits } = this.#parts;
    await uploads.refuseFull(org_id, coming);
    if ((await store.countBlobs(org_id)) >= limits.blobs_per_org) {
      const what = `${limits.blobs_per_org} blobs and manifests`;
      fail("limit_reached", `the registry keeps at most ${what} of an organization (limit blobs_per_org)`, {
        hint: "delete tags or manifests that are not needed",
      });
    }
  }

  async #refuseTags({ org_id, repository, full }: RepositoryAt, tag: string): Promise<void> {
    const { store, limits } = this.#parts;
    if ((await store.findTag(org_id, repository, tag)) !== undefined) return;
    if ((await store.countTags(org_id, repository)) >= limits.tags_per_repository)
      fail("limit_reached", `${full} has ${limits.tags_per_repository} tags (limit tags_per_repository)`, {
        hint: "delete some of them",
      });
  }

  async #refuseMissing(
    { org_id, repository, full }: RepositoryAt,
    blobs: string[],
    manifests: string[],
  ): Promise<void> {
    const { store } = this.#parts;
    for (const digest of blobs)
      if (!(await store.findBlob(org_id, repository, digest)))
        fail("manifest_blob_unknown", `the manifest names blob ${digest}, which ${full} does not have`);
    for (const digest of manifests)
      if (!(await store.findManifest(org_id, repository, digest)))
        fail("manifest_blob_unknown", `the index names manifest ${digest}, which ${full} does not have`);
  }

  /** Users of the manifest, or of an index that lists it. */
  async #users({ org_id, repository }: RepositoryAt, digest: string): Promise<string[]> {
    const { store, users } = this.#parts;
    return await users([digest, ...(await store.indexesOf(org_id, repository, digest))], org_id);
  }
}

function manifestUnknown({ full }: RepositoryAt, { tag, digest }: Reference): never {
  fail("manifest_unknown", tag === undefined ? `${full} has no manifest ${digest}` : `${full} has no tag ${tag}`);
}
