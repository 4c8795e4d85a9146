/** A blob that a repository has. Its bytes may be shared with other repositories of the organization. */
export interface RepositoryBlob {
  org_id: string;
  repository: string;
  digest: string;
  size: number;
  /** Where the bytes are in the object store: each upload has a key of its own. */
  key: string;
  /** The process whose disk has them, when processes share no object store. */
  node_id: string;
  /** When it was last uploaded, mounted or named by a manifest. */
  touched_at: number;
}

/** A manifest or index. Its bytes are a blob of the repository as well. */
export interface RepositoryManifest {
  org_id: string;
  repository: string;
  digest: string;
  media_type: string;
  size: number;
  /** What it is attached to, for referrers. */
  subject: string | null;
  artifact_type: string | null;
  /** JSON object. */
  annotations: string | null;
  touched_at: number;
}

/** A repository in a list. */
export interface Repository {
  org_id: string;
  repository: string;
  tags: number;
  manifests: number;
  /** Of its blobs, each counted once. */
  bytes: number;
  touched_at: number;
}

/** A part of a list, by name: what comes after `last`. */
export interface NamePage {
  last: string;
  limit: number;
}
