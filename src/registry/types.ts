/** A blob that a repository has. Its bytes may be shared with other repositories of the organization. */
export interface RepositoryBlob {
  org_id: string;
  repository: string;
  digest: string;
  size: number;
  /** Key in the object store, unique per upload. */
  key: string;
  /** The process that stores it, when processes share no object store. */
  node_id: string;
  /** When it was last uploaded, mounted or referenced. */
  touched_at: number;
}

/** A manifest or index. Its bytes are also a blob of the repository. */
export interface RepositoryManifest {
  org_id: string;
  repository: string;
  digest: string;
  media_type: string;
  size: number;
  /** The manifest it is attached to, for referrers. */
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
  /** Size of its blobs, each counted once. */
  bytes: number;
  touched_at: number;
}

export interface RepositoryTag {
  repository: string;
  tag: string;
  digest: string;
}

/** A page of a list of names, after `last`. */
export interface NamePage {
  last: string;
  limit: number;
}
