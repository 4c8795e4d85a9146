import type { ImageRef } from "./types.ts";

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
