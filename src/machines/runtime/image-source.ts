import type { ReleaseImage } from "#apps/release-store.ts";
import type { ImageRef } from "../types.ts";

/** Provides images to a driver: a store of unpacked layers, filled by pulls and imports. */
export interface ImageSource {
  /**
   * Resolves a name to a digest: from local images of this organization, else from the registry. Fails with
   * `image_not_found`, `image_refused` or `registry_unreachable`.
   */
  resolve(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef>;
  /**
   * Returns the unpacked image, pulling it if needed, and holds it for the machine so that clean-up keeps its layers.
   * `ref.digest` wins when set, so a machine boots what it was created with.
   */
  hold(machine: Holder, ref: ImageRef, signal: AbortSignal): Promise<HeldImage>;
  /** The machine was destroyed or uses another image now. */
  release(machine_id: string): Promise<void>;
}

/**
 * The user of an image; a `Launch` is one. An image pulled or imported by one organization is not available to others.
 */
export interface Holder {
  id: string;
  org_id: string;
}

export interface HeldImage {
  ref: ImageRef;
  /** Directories of the unpacked layers, lowest first. Owners are as in the image; whiteouts in overlayfs form. */
  layers: readonly string[];
  config: ImageConfig;
  architecture: string;
  labels: Readonly<Record<string, string>>;
  exposed_ports: readonly string[];
}

/** Reads files of images without a machine. */
export interface ImageFiles {
  /** The image's layers, topmost first, if all are local and available to the organization; never pulls. */
  layers(ref: ImageRef, org_id: string): Promise<ImageLayer[] | undefined>;
}

/** One unpacked layer. A whiteout is a character device 0/0, as in overlayfs. */
export interface ImageLayer {
  dir: string;
  /** Opaque directories, `/like/this`, which hide the layers below. */
  opaque: readonly string[];
}

/** The part of an image's config that a boot uses. */
export interface ImageConfig {
  entrypoint: readonly string[];
  cmd: readonly string[];
  env: Readonly<Record<string, string>>;
  /** `user`, `uid`, `user:group`, or empty for root. */
  user: string;
  working_dir: string;
  stop_signal?: string;
  healthcheck?: ImageHealthcheck;
}

/** The HEALTHCHECK of a Dockerfile, as Docker's image configs have it. */
export interface ImageHealthcheck {
  /** `NONE`, `CMD` and words, or `CMD-SHELL` and a line. */
  test: string[];
  interval_ms?: number;
  timeout_ms?: number;
  start_period_ms?: number;
}

/**
 * Manages local images. An owner is an organization's id or `PLATFORM`, whose images all organizations may use. Errors
 * are those of `ImageSource`.
 */
export interface ImageCatalog {
  /** Images of the owner and the platform; for the platform, all images. */
  list(owner: string): Promise<ImageSummary[]>;
  show(image: string, owner: string): Promise<ImageDetails>;
  /** Imports a tar archive: a root file system, an OCI layout or a docker archive. The owner gets the name. */
  import(name: string, upload: AsyncIterable<Uint8Array>, owner: string, signal: AbortSignal): Promise<ImageSummary>;
  /** Imports an image of layers, of which some may be here already. The owner gets the name. */
  assemble(name: string, image: ImageParts, owner: string, signal: AbortSignal): Promise<ImageSummary>;
  /**
   * The layers of an image as parts of others: undefined unless all of them are here, available to the owner, and every
   * other process of the platform can get them.
   */
  parts(digest: string, owner: string): Promise<ImagePart[] | undefined>;
  /** Resolves the name at the registry and pulls the image, reporting progress. The last event has `image`. */
  pull(image: string, owner: string, signal: AbortSignal): AsyncIterable<PullProgress>;
  /**
   * Removes a name. Fails with `image_in_use` while a machine uses it. An image that a release uses loses its tag and
   * stays under its digest, which cannot be removed.
   */
  remove(image: string, owner: string): Promise<void>;
  /** Removes unused images: pulled ones not used for long (`all`: not used now), and layers without an image. */
  collect(input: { dry_run: boolean; all: boolean }): Promise<Collected>;
}

export interface ImageParts {
  /** The config document, whose diff ids are those of the layers. */
  config: Buffer;
  /** Lowest first. */
  layers: readonly ImagePart[];
}

export interface ImagePart {
  diff_id: string;
  /** As in the manifest. */
  digest: string;
  size: number;
  media_type: string;
  /** The packed layer. Absent when it is here. */
  file?: string;
  /** The file may have something else in it, and is read in any case. */
  claimed?: boolean;
}

export const PLATFORM = "platform";

export type { ReleaseImage } from "#apps/release-store.ts";

/** Images that releases of all apps use: clean-up keeps them, whatever their tags resolve to now. */
export type ReleaseImages = () => Promise<ReleaseImage[]>;

export interface ImageSummary {
  /** As a user writes it: `web:1`, `ghcr.io/acme/web:1`. */
  name: string;
  digest: string;
  /** An organization's id, or `platform`. */
  owner: string;
  source: "pulled" | "imported" | "built-in";
  layers: number;
  /** Unpacked size of local layers. Shared layers count for each image. */
  bytes: number;
  /** Whether all layers are local. */
  complete: boolean;
  /** Number of machines that boot from it. */
  machines: number;
  created_at: number;
  used_at: number;
}

export interface ImageDetails extends ImageSummary {
  architecture: string;
  config: ImageConfig;
  labels: Readonly<Record<string, string>>;
  exposed_ports: readonly string[];
  layer_list: readonly { diff_id: string; bytes: number; entries: number; here: boolean }[];
  machine_ids: readonly string[];
}

export interface PullProgress {
  /** Absent in events about the whole image. */
  layer?: string;
  state: "resolving" | "waiting" | "downloading" | "unpacking" | "here" | "done";
  done_bytes?: number;
  total_bytes?: number;
  /** In the last event only. */
  image?: ImageSummary;
}

export interface Collected {
  dry_run: boolean;
  images: readonly { name: string; owner: string; digest: string }[];
  layers: readonly { diff_id: string; bytes: number }[];
  /** Freed disk space, approximately. */
  bytes: number;
}
