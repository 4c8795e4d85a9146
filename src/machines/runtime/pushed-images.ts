/** Images that were pushed to the platform's own registry. Implemented by the registry. */
export interface PushedImages {
  /** Whether `registry` in an image name is the platform's own registry. */
  isOwn(registry: string): boolean;
  /** Resolves a tag, or checks that the repository has the digest. `repository` includes the organization. */
  find(org_id: string, repository: string, wanted: { tag?: string; digest?: string }): Promise<string | undefined>;
  /** Reads a manifest, index or config. */
  document(org_id: string, repository: string, digest: string, signal: AbortSignal): Promise<Buffer>;
  /** Writes a blob to a file. */
  blob(org_id: string, repository: string, digest: string, file: string, signal: AbortSignal): Promise<void>;
}

/** Name of the platform's own registry in image names, wherever the platform runs. */
export const OWN_REGISTRY = "registry.hangar";
