import type { EgressPolicy } from "#core/egress-policy.ts";
import type { BuildOptions } from "./types.ts";

/** The input of one build. */
export interface BuildRequest extends BuildOptions {
  /** 14 hex digits. */
  id: string;
  org_id: string;
  app_id: string;
  app_name: string;
  /** The address that its steps have in the organization's private network. */
  private_ip: string;
  /** The egress policy of its steps. */
  egress: EgressPolicy;
  /** The folder with the context, in a folder of the build's own; the builder may move it within that. */
  context: string;
  /** The name that the image gets. */
  image: string;
}

export interface BuiltImage {
  digest: string;
}

/**
 * Builds images. The steps of a Dockerfile are untrusted programs: they see the context, the app's
 * layer cache, the organization's network, and nothing of the host. Implemented in drivers/builds, tried by `test/system/builds.test.ts`.
 */
export interface Builder {
  /** Why no image can be built here, or undefined. */
  problem(): string | undefined;
  /**
   * Builds an image and imports it under its name. `onOutput` streams the output. Fails with `BuildFailed` when the
   * build itself failed. Whether it succeeds, fails or is aborted: afterwards none of its processes and files remain,
   * except the image and the layer cache.
   */
  build(request: BuildRequest, onOutput: (text: string) => void, signal: AbortSignal): Promise<BuiltImage>;
  /** Removes what builds of an earlier process left behind. */
  clear(): Promise<void>;
  /** Removes layer caches of apps that do not exist. */
  sweep(exists: (app_id: string) => Promise<boolean>): Promise<void>;
}

/** A build that did not succeed; the message says why, for the person who started it. */
export class BuildFailed extends Error {
  override readonly name = "BuildFailed";
}

/** The builder of a process that cannot build: it only has the reason. */
export const noBuilder = (problem: string): Builder => ({
  problem: () => problem,
  build: async () => {
    throw new BuildFailed(problem);
  },
  clear: async () => {},
  sweep: async () => {},
});
