/** An image that was imported somewhere in a platform of several processes. */
export interface ImportedImage {
  /** An organization's id, or `platform`. */
  owner: string;
  /** Full name: `registry/repository:tag`. */
  name: string;
  digest: string;
  /** The process that imported it, which holds the archive when there is no shared object store. */
  node_id: string;
  created_at: number;
}

/** Stores the names of imported images for all processes. Implemented in stores/, tested by its suite. */
export interface ImportedImages {
  /** Points the name to this image. */
  put(image: ImportedImage): Promise<void>;
  find(owner: string, name: string): Promise<ImportedImage | undefined>;
  /** Images of one owner, or of all, by name. */
  list(owner?: string): Promise<ImportedImage[]>;
  /** Images with this digest. */
  withDigest(digest: string): Promise<ImportedImage[]>;
  /** Returns false when there is none. */
  remove(owner: string, name: string): Promise<boolean>;
  /** Machines that boot from it, on any host; of one organization, or of all. */
  users(digest: string, org_id?: string): Promise<string[]>;
}
