/** An image that was imported somewhere in a platform of several processes. */
export interface ImportedImage {
  /** An organization's id, or `platform`. */
  owner: string;
  /** In full: `registry/repository:tag`. */
  name: string;
  digest: string;
  /** The process that took it in, and has it packed when there is no store that all of them share. */
  node_id: string;
  created_at: number;
}

/** Names of imported images, as all processes know them. Implemented in stores/, examined by its suite. */
export interface ImportedImages {
  /** The name stands for this one from now on. */
  put(image: ImportedImage): Promise<void>;
  find(owner: string, name: string): Promise<ImportedImage | undefined>;
  /** Of one owner, or of all, by name. */
  list(owner?: string): Promise<ImportedImage[]>;
  /** Those that stand for this digest. */
  withDigest(digest: string): Promise<ImportedImage[]>;
  /** False when there is none. */
  remove(owner: string, name: string): Promise<boolean>;
  /** Machines that boot from it, wherever they are; of one organization, or of all. */
  users(digest: string, org_id?: string): Promise<string[]>;
}
