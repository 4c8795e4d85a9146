/** Limits of the registry. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

export const REGISTRY_LIMITS = {
  /** Size of a manifest or index. Past it: 413 `payload_too_large`. */
  manifest_bytes: 4 * MIB,
  /** Annotations of a manifest with a subject, as JSON: lists of referrers repeat them. Past it: 400 `manifest_invalid`. */
  annotations_bytes: 64 * 1024,
  /** Size of a blob. Past it: 413 `payload_too_large`. */
  blob_bytes: 20 * GIB,
  /** Blobs and manifests that one manifest references. Past it: 400 `manifest_invalid`. */
  references: 1000,
  /**
   * Size of all blobs of one organization, uploads included (setting `image_quota_gb`). Past it: 422 `limit_reached`.
   */
  org_bytes: 100 * GIB,
  /** Blobs and manifests of one organization, in all repositories. Past it: 422 `limit_reached`. */
  blobs_per_org: 200_000,
  /** Tags of one repository. Past it: 422 `limit_reached`. */
  tags_per_repository: 10_000,
  /** Open uploads of one organization. Past it: 422 `limit_reached`. */
  uploads_per_org: 200,
  /** Tags and repositories per page; `n` may request fewer. */
  page: 1000,
  /** Referrers per page; the response links to the next one. */
  referrers_page: 100,
  /** Free space that an upload leaves on the disk. Past it: 503 `storage_full`. */
  disk_kept_bytes: 512 * MIB,
  /** Idle time after which an upload is removed. */
  upload_kept_ms: DAY,
  /** Age after which an unreferenced blob is removed. */
  blob_kept_ms: DAY,
  /** Age after which an untagged manifest is removed that no index, release or machine uses. */
  untagged_kept_ms: 7 * DAY,
  /** Interval of clean-ups. */
  collect_ms: HOUR,
  /** Rows per step of a clean-up. */
  collect_rows: 500,
} as const;

export type RegistryLimits = { readonly [Name in keyof typeof REGISTRY_LIMITS]: number };
