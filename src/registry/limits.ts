/** Bounds of the registry, by name. What happens at the bound is written beside it. */
const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

export const REGISTRY_LIMITS = {
  /** A manifest or an index. Past it: 413 `payload_too_large`. */
  manifest_bytes: 4 * MIB,
  /** A blob. Past it: 413 `payload_too_large`. */
  blob_bytes: 20 * GIB,
  /** Blobs and manifests that one manifest names. Past it: 400 `manifest_invalid`. */
  references: 1000,
  /** All blobs of one organization, uploads included (setting `image_quota_gb`). Past it: 422 `limit_reached`. */
  org_bytes: 100 * GIB,
  /** Uploads that one organization has open at a time. Past it: 422 `limit_reached`. */
  uploads_per_org: 200,
  /** Tags, repositories and referrers in one answer, when `n` asks for no fewer. */
  page: 1000,
  /** Free space that an upload leaves on the disk. Past it: 503 `storage_full`. */
  disk_kept_bytes: 512 * MIB,
  /** An upload without a request for this long is removed. */
  upload_kept_ms: DAY,
  /** A blob that no manifest names is removed after this long. */
  blob_kept_ms: DAY,
  /** A manifest without a tag that no index, release or machine needs is removed after this long. */
  untagged_kept_ms: 7 * DAY,
  /** Between clean-ups. */
  collect_ms: HOUR,
  /** Rows that one step of a clean-up removes. */
  collect_rows: 500,
} as const;

export type RegistryLimits = { readonly [Name in keyof typeof REGISTRY_LIMITS]: number };
