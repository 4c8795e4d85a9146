import type { ReleaseImage } from "#apps/release-store.ts";
import type { ImageRef } from "../types.ts";

/** Where a driver's images come from: a store of unpacked layers that is filled by pulling and importing. */
export interface ImageSource {
  /**
   * What the name stands for now, with its digest: of what is already here for this organization, else asked of the
   * registry. Fails with a catalogued error (`image_not_found`, `image_refused`, `registry_unreachable`) that a
   * caller can act on.
   */
  resolve(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef>;
  /**
   * The image unpacked and held for the machine, so that no clean-up takes its layers away: pulled first when it
   * is not here. `ref.digest` decides when it is set, so a machine boots what it was created with.
   */
  hold(machine: Holder, ref: ImageRef, signal: AbortSignal): Promise<HeldImage>;
  /** The machine is gone, or holds another image now. */
  release(machine_id: string): Promise<void>;
}

/** Whose image it is: a `Launch` is one. What one organization pulled or imported is no other's to boot. */
export interface Holder {
  id: string;
  org_id: string;
}

export interface HeldImage {
  ref: ImageRef;
  /** Folders of the unpacked layers, the lowest first. Owners are as in the image; whiteouts as overlayfs wants them. */
  layers: readonly string[];
  config: ImageConfig;
}

/** Files of images, for those who serve them without a machine. */
export interface ImageFiles {
  /** The image's layers, the topmost first, when all of them are here and the organization's to use; nothing is got. */
  layers(ref: ImageRef, org_id: string): Promise<ImageLayer[] | undefined>;
}

/** One unpacked layer. What it removes of those below is a character device with the number 0, as overlayfs has it. */
export interface ImageLayer {
  dir: string;
  /** Folders, `/like/this`, in which nothing of the layers below shows. */
  opaque: readonly string[];
}

/** The part of an image's own configuration that a boot uses. */
export interface ImageConfig {
  entrypoint: readonly string[];
  cmd: readonly string[];
  env: Readonly<Record<string, string>>;
  /** `user`, `uid`, `user:group`, or empty for root. */
  user: string;
  working_dir: string;
  stop_signal?: string;
}

/**
 * The images that are here, for those who look after them. An owner is an organization's id, or `PLATFORM`, whose
 * images every organization may use. Errors are the ones of `ImageSource`.
 */
export interface ImageCatalog {
  /** The owner's and the platform's; for the platform, everyone's. */
  list(owner: string): Promise<ImageSummary[]>;
  show(image: string, owner: string): Promise<ImageDetails>;
  /** Takes in a tar: a root file system, an OCI layout or a docker archive. The name is the owner's afterwards. */
  import(name: string, upload: AsyncIterable<Uint8Array>, owner: string, signal: AbortSignal): Promise<ImageSummary>;
  /** Asks the registry what the name stands for now and gets all of it, telling how it goes. The last word has `image`. */
  pull(image: string, owner: string, signal: AbortSignal): AsyncIterable<PullProgress>;
  /**
   * Forgets a name. Fails with `image_in_use` while a machine needs it. An image that a release needs loses its tag and
   * stays under its digest; that one cannot be removed.
   */
  remove(image: string, owner: string): Promise<void>;
  /** Removes what nobody needs: pulled images that were not used for long (`all`: not at all), layers without an image. */
  collect(input: { dry_run: boolean; all: boolean }): Promise<Collected>;
}

export const PLATFORM = "platform";

export type { ReleaseImage } from "#apps/release-store.ts";

/** What releases need, of all apps: such an image is not cleaned up, whatever its tag stands for by now. */
export type ReleaseImages = () => Promise<ReleaseImage[]>;

export interface ImageSummary {
  /** As one writes it: `web:1`, `ghcr.io/acme/web:1`. */
  name: string;
  digest: string;
  /** An organization's id, or `platform`. */
  owner: string;
  source: "pulled" | "imported" | "built-in";
  layers: number;
  /** Unpacked, as far as it is here. Layers that several images share count for each of them. */
  bytes: number;
  /** Whether all of its layers are here. */
  complete: boolean;
  /** How many machines boot from it. */
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
  /** Absent in the words about the whole image. */
  layer?: string;
  state: "resolving" | "waiting" | "downloading" | "unpacking" | "here" | "done";
  done_bytes?: number;
  total_bytes?: number;
  /** In the last word. */
  image?: ImageSummary;
}

export interface Collected {
  dry_run: boolean;
  images: readonly { name: string; owner: string; digest: string }[];
  layers: readonly { diff_id: string; bytes: number }[];
  /** What the disk has more of afterwards, nearly. */
  bytes: number;
}
