import type { NamePage, Repository, RepositoryBlob, RepositoryManifest } from "./types.ts";

export interface ManifestWrite {
  manifest: RepositoryManifest;
  /** The manifest's own bytes. */
  blob: RepositoryBlob;
  tag: string | undefined;
  /** Blobs that it needs; each must be in the repository. */
  blobs: readonly string[];
  /** Manifests that an index names; each must be in the repository. */
  manifests: readonly string[];
}

/** Repositories, tags, manifests and links to blobs. Implemented in stores/, examined by `store.suite.ts`. */
export interface RegistryStore {
  findBlob(org_id: string, repository: string, digest: string): Promise<RepositoryBlob | undefined>;
  /** The blob in whatever repository of the organization. */
  findOrgBlob(org_id: string, digest: string): Promise<RepositoryBlob | undefined>;
  /** Adds the blob, or touches the one that is there: that one keeps its key. Answers the one that is kept. */
  putBlob(blob: RepositoryBlob): Promise<RepositoryBlob>;
  /** Links a blob of one repository into another. Undefined when the first has none (any more). */
  mountBlob(org_id: string, digest: string, from: string, to: string, now: number): Promise<RepositoryBlob | undefined>;
  /** Answers the key when nothing needs it any more; "referenced" when a manifest does; undefined when there is none. */
  deleteBlob(
    org_id: string,
    repository: string,
    digest: string,
  ): Promise<{ unused_key?: string } | "referenced" | undefined>;
  /** What the blobs of an organization take, each counted once. */
  usedBytes(org_id: string): Promise<number>;

  findManifest(org_id: string, repository: string, digest: string): Promise<RepositoryManifest | undefined>;
  /** By tag, in whatever repository. */
  findTag(org_id: string, repository: string, tag: string): Promise<string | undefined>;
  /** All of it or nothing. False when something that it names is not in the repository. */
  putManifest(write: ManifestWrite): Promise<boolean>;
  /** With its tags. False when there is none. */
  deleteManifest(org_id: string, repository: string, digest: string): Promise<boolean>;
  deleteTag(org_id: string, repository: string, tag: string): Promise<boolean>;
  tags(org_id: string, repository: string, page: NamePage): Promise<{ tag: string; digest: string }[]>;
  /** Manifests of the repository that name this one as their subject, by digest. */
  referrers(org_id: string, repository: string, subject: string): Promise<RepositoryManifest[]>;
  /** Indexes of the repository that list this manifest. */
  indexesOf(org_id: string, repository: string, digest: string): Promise<string[]>;
  hasRepository(org_id: string, repository: string): Promise<boolean>;
  repositories(org_id: string, page: NamePage): Promise<Repository[]>;

  /** Manifests that no tag, index or subject leads to and that were not touched since. */
  untagged(before: number, limit: number): Promise<RepositoryManifest[]>;
  /** Removes blobs that no manifest names and that were not touched since. Answers the keys that nothing needs any more. */
  collectBlobs(before: number, limit: number): Promise<{ key: string; node_id: string; size: number }[]>;
  /** Which of these keys belong to a blob. */
  knownKeys(keys: readonly string[]): Promise<Set<string>>;
}
