/** Images that were pushed to the platform's own registry. Implemented by the registry. */
export interface PushedImages {
  /** Whether `registry` in an image's name is the platform itself. */
  isOwn(registry: string): boolean;
  /** The digest that a tag stands for, or the digest itself when the repository has it. `repository` has the organization in it. */
  find(org_id: string, repository: string, wanted: { tag?: string; digest?: string }): Promise<string | undefined>;
  /** A manifest, an index or a config. */
  document(org_id: string, repository: string, digest: string, signal: AbortSignal): Promise<Buffer>;
  /** Writes a blob to a file. */
  blob(org_id: string, repository: string, digest: string, file: string, signal: AbortSignal): Promise<void>;
}

/** What the platform's own registry is called in an image's name, wherever the platform is. */
export const OWN_REGISTRY = "registry.hangar";
