/** Limits of the image store. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

export const IMAGE_LIMITS = {
  /** A manifest, an index or an image's config. Past it: 400 `image_refused`. */
  document_bytes: 4 * MIB,
  /** Layers of one image. Past it: 400 `image_refused`. */
  layers: 127,
  /** Packed size of one layer. Past it: 400 `image_refused`, before the download. */
  layer_bytes: 20 * GIB,
  /** Packed size of all layers of an image. Past it: 400 `image_refused`, before the download. */
  image_bytes: 40 * GIB,
  /** Unpacked size of one layer. Past it: 400 `image_refused`, and what was unpacked is removed. */
  tree_bytes: 40 * GIB,
  /** Files, directories and links of one layer. Past it: as above. */
  tree_entries: 1_000_000,
  /** Maximum compression ratio of a layer or upload, once it is larger than the next limit. */
  ratio: 200,
  ratio_from_bytes: 256 * MIB,
  /** Length of a path in a layer, and of a link target. Past it: 400 `image_refused`. */
  path_bytes: 4096,
  /** Length of one file name: what file systems allow. Past it: 400 `image_refused`. */
  name_bytes: 255,
  /** Symbolic links followed inside the tree for one directory. Past it: 400 `image_refused`. */
  link_hops: 40,
  /** Listed opaque directories of one layer. One more: its static files are not served by the proxy. */
  opaque_listed: 1000,
  /** Extended header of one entry. Past it: 400 `image_refused`. */
  pax_bytes: MIB,
  /** Size of an uploaded image. Past it: 413. */
  upload_bytes: 40 * GIB,
  /** Entries of an OCI or docker archive, beside the layers. Past it: 400 `image_refused`. */
  archive_entries: 10_000,
  /** Free disk space that unpacking leaves. Past it: 503 `storage_full`, and what was unpacked is removed. */
  disk_kept_bytes: 512 * MIB,
  /**
   * Size of all images of one organization, uploads included (setting `image_quota_gb`). Past it: 422 `limit_reached`.
   */
  org_image_bytes: 100 * GIB,
  /** Image names of one organization. One more: 422 `limit_reached`. */
  names_per_org: 10_000,

  /** Layers downloaded in parallel; further ones wait. */
  downloads_parallel: 4,
  /** Layers unpacked in parallel; further ones wait. */
  unpacks_parallel: 2,
  /** Timeout of one resolve, retries included. Past it: 412 `registry_unreachable`. */
  resolve_ms: 20 * SECOND,
  /** Timeout of a registry's response headers. Past it: retried. */
  answer_ms: 15 * SECOND,
  /** Stall timeout of a download. Past it: resumed from there. */
  stall_ms: 30 * SECOND,
  /** Attempts of one request; of a layer, attempts without progress. Past it: 412 `registry_unreachable`. */
  tries: 5,
  /** Delay before the first retry, doubled for each further one … */
  retry_ms: 250,
  /** … up to this, also when the registry's Retry-After is longer. */
  retry_max_ms: 10 * SECOND,
  redirects: 5,
  /** Lifetime of a registry token that states none. */
  token_ms: MINUTE,

  /** Time for which a partial download can be resumed. */
  partial_kept_ms: DAY,
  /** Retention of a pulled image after its last use, when no machine uses it. */
  unused_kept_ms: 7 * DAY,
  /** Retention of a replaced imported image under its digest, when no machine or release uses it. */
  replaced_kept_ms: HOUR,
  /** Interval of clean-ups. */
  collect_ms: 60 * MINUTE,
} as const;

export type ImageLimits = { readonly [Name in keyof typeof IMAGE_LIMITS]: number };
