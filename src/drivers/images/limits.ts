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
  /** One layer as it travels. Past it: 400 `image_refused`, before it is fetched. */
  layer_bytes: 20 * GIB,
  /** An image's layers as they travel, together. Past it: 400 `image_refused`, before they are fetched. */
  image_bytes: 40 * GIB,
  /** One layer unpacked. Past it: 400 `image_refused`, and what was unpacked is removed. */
  tree_bytes: 40 * GIB,
  /** Files, folders and links of one layer. Past it: as above. */
  tree_entries: 1_000_000,
  /** How many times its size a layer or an upload may grow when it is unpacked, once it is larger than the next limit. */
  ratio: 200,
  ratio_from_bytes: 256 * MIB,
  /** A whole path in a layer, and where a link points. Past it: 400 `image_refused`. */
  path_bytes: 4096,
  /** One name in a path: what file systems allow. Past it: 400 `image_refused`. */
  name_bytes: 255,
  /** Links that are followed, inside the tree, to find one folder. Past it: 400 `image_refused`. */
  link_hops: 40,
  /** Folders of one layer that are listed as hiding all below them. One more: its files are served by machines only. */
  opaque_listed: 1000,
  /** The extended header of one entry. Past it: 400 `image_refused`. */
  pax_bytes: MIB,
  /** An image that is sent to be imported. Past it: 413. */
  upload_bytes: 40 * GIB,
  /** Entries of an OCI or docker archive around the layers. Past it: 400 `image_refused`. */
  archive_entries: 10_000,
  /** Space that unpacking leaves free on the disk. Past it: 503 `storage_full`, and what was unpacked is removed. */
  disk_kept_bytes: 512 * MIB,
  /** All images of one organization on the disk, uploads included (setting `image_quota_gb`). Past it: 422 `limit_reached`. */
  org_image_bytes: 100 * GIB,
  /** Names one organization may have. One more: 422 `limit_reached`. */
  names_per_org: 10_000,

  /** Layers that are fetched at the same time; the others wait their turn. */
  downloads_parallel: 4,
  /** Layers that are unpacked at the same time; the others wait their turn. */
  unpacks_parallel: 2,
  /** What one resolve may take, tries included, so that a create is answered. Past it: 412 `registry_unreachable`. */
  resolve_ms: 20 * SECOND,
  /** Until a registry begins its answer. Past it: tried again. */
  answer_ms: 15 * SECOND,
  /** Without a byte in the middle of an answer. Past it: cut, and gone on with from there. */
  stall_ms: 30 * SECOND,
  /** Tries of one request; of a layer, tries that brought nothing. Past it: 412 `registry_unreachable`. */
  tries: 5,
  /** Before the second try; each further one comes after twice as long … */
  retry_ms: 250,
  /** … but never later than this, also when the registry asks for more. */
  retry_max_ms: 10 * SECOND,
  redirects: 5,
  /** A token of a registry that does not say how long it is good for. */
  token_ms: MINUTE,

  /** A layer that was fetched in part can be gone on with for this long. */
  partial_kept_ms: DAY,
  /** A pulled image that no machine holds goes this long after it was last asked for. */
  unused_kept_ms: 7 * DAY,
  /** An imported image whose tag was imported again stays this long under its digest when no machine or release needs it. */
  replaced_kept_ms: HOUR,
  /** Between clean-ups. */
  collect_ms: 60 * MINUTE,
} as const;

export type ImageLimits = { readonly [Name in keyof typeof IMAGE_LIMITS]: number };
