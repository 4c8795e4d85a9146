import type { NamePage, Repository, RepositoryBlob, RepositoryManifest, RepositoryTag } from "./types.ts";

export interface ManifestWrite {
  manifest: RepositoryManifest;
  /** The manifest's own bytes. */
  blob: RepositoryBlob;
  tag: string | undefined;
  /** Referenced blobs, which must be in the repository. */
  blobs: readonly string[];
  /** Manifests of an index, which must be in the repository. */
  manifests: readonly string[];
}

/** Stores repositories, tags, manifests and links to blobs. Implemented in stores/, tested by `store.suite.ts`. */
export interface RegistryStore {
  findBlob(org_id: string, repository: string, digest: string): Promise<RepositoryBlob | undefined>;
  /** The blob in any repository of the organization. */
  findOrgBlob(org_id: string, digest: string): Promise<RepositoryBlob | undefined>;
  /** Adds the blob, or touches the existing one, which keeps its key. Returns the stored one. */
  putBlob(blob: RepositoryBlob): Promise<RepositoryBlob>;
  /** Links a blob of one repository into another. Undefined when the source does not have it. */
  mountBlob(org_id: string, digest: string, from: string, to: string, now: number): Promise<RepositoryBlob | undefined>;
  /**
   * Returns the key when nothing uses it any more; "referenced" when a manifest does; undefined when it does not exist.
   */
  deleteBlob(
    org_id: string,
    repository: string,
    digest: string,
  ): Promise<{ unused_key?: string } | "referenced" | undefined>;
  /** Blobs and manifests in all repositories of the organization. */
  countBlobs(org_id: string): Promise<number>;
  /** Size of an organization's blobs, each counted once. */
  usedBytes(org_id: string): Promise<number>;

  findManifest(org_id: string, repository: string, digest: string): Promise<RepositoryManifest | undefined>;
  /** By tag. */
  findTag(org_id: string, repository: string, tag: string): Promise<string | undefined>;
  /** Atomic. Returns false when a reference is not in the repository. */
  putManifest(write: ManifestWrite): Promise<boolean>;
  /** With its tags. Returns false when it does not exist. */
  deleteManifest(org_id: string, repository: string, digest: string): Promise<boolean>;
  deleteTag(org_id: string, repository: string, tag: string): Promise<boolean>;
  tags(org_id: string, repository: string, page: NamePage): Promise<{ tag: string; digest: string }[]>;
  /** Manifests of the repository with this one as their subject, by digest. */
  referrers(org_id: string, repository: string, subject: string, page: NamePage): Promise<RepositoryManifest[]>;
  /** Tags of the repository. */
  countTags(org_id: string, repository: string): Promise<number>;
  /** Indexes of the repository that list this manifest. */
  indexesOf(org_id: string, repository: string, digest: string): Promise<string[]>;
  hasRepository(org_id: string, repository: string): Promise<boolean>;
  repositories(org_id: string, page: NamePage): Promise<Repository[]>;
  /** The first `limit` tags of each repository on the page, in order. */
  tagsOfEach(org_id: string, page: NamePage, limit: number): Promise<RepositoryTag[]>;

  /** Manifests without a tag, index or subject that were not touched since. */
  untagged(before: number, limit: number): Promise<RepositoryManifest[]>;
  /** Removes unreferenced blobs that were not touched since. Returns unused keys. */
  collectBlobs(before: number, limit: number): Promise<{ key: string; node_id: string; size: number }[]>;
  /** Which of these keys belong to a blob. */
  knownKeys(keys: readonly string[]): Promise<Set<string>>;
}
