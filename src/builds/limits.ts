/** Limits of builds. Each comment says what happens when the limit is reached. */
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const MINUTE = 60_000;
const DAY = 24 * 3_600_000;

export const BUILD_LIMITS = {
  /** Files, directories and links of one build context. Past it: 422 `limit_reached`. */
  context_entries: 50_000,
  /** Size of the context's file list, as JSON. Past it: 413 `payload_too_large`. */
  context_list_bytes: 16 * MIB,
  /** Total size of a context's files, duplicates included. Past it: 422 `limit_reached`. */
  context_bytes: 10 * GIB,
  /** Path components of a file in a context. Past it: 400 `build_refused`. */
  context_depth: 64,
  /** Size of the Dockerfile. Past it: the build is `failed`. */
  dockerfile_bytes: MIB,
  /** Size of one file of a context. Past it: 413 `payload_too_large`. */
  file_bytes: 2 * GIB,
  /** Total size of an organization's stored context files. Past it: 422 `limit_reached`. */
  org_files_bytes: 10 * GIB,
  /** Number of these files. Past it: 422 `limit_reached`. */
  org_files: 200_000,
  /** A file that no build used for this long is removed. */
  file_kept_ms: 7 * DAY,
  /** Free space that uploads and contexts leave on the disk. Past it: 503 `storage_full`; a build is `failed`. */
  disk_kept_bytes: 512 * MIB,
  /** Queued and running builds of one organization. Past it: 422 `limit_reached`. */
  builds_per_org: 20,
  /**
   * Total size of the file lists and variables of an organization's queued and running builds. Past it: 422
   * `limit_reached`.
   */
  org_queue_bytes: 32 * MIB,
  /** Builds that run in parallel in one process, one per organization; further ones wait. */
  builds_parallel: 2,
  /**
   * Interval at which a process checks whether another process cancelled one of its builds; a notification arrives
   * sooner.
   */
  cancel_look_ms: 2000,
  /** Time a cancel request waits for the build to end; then it returns the current state. */
  cancel_wait_ms: 10_000,
  /** Time limit of a build. Past it: the build is stopped and `failed`. */
  build_ms: 30 * MINUTE,
  /** Size of a build's log. Past it: the rest is omitted, and the log says so. */
  log_bytes: 4 * MIB,
  /** Length of the step of a build that lists show. Past it: the rest is omitted. */
  step_chars: 200,
  /** Interval at which a process reads what is being built and deployed, for each organization that somebody watches. */
  ongoing_look_ms: 1000,
  /** Builds, failed builds and deploys that a stream shows, of each; lists have all. */
  ongoing_shown: 50,
  /** How long a build that failed is shown, unless a newer build or release of its app began. */
  failed_shown_ms: DAY,
  /** Builds kept per app; older ones are removed with their logs. */
  builds_per_app: 50,
  /** Memory of a build. Past it: the kernel kills a process of the build. */
  memory_mb: 2048,
  /** CPUs of a build. */
  cpus: 2,
  /** Size of the disk with an app's layer cache and the image being built. Full: ENOSPC in the build. */
  cache_bytes: 20 * GIB,
  /** Total size of these disks of an organization. Past it: the least recently used disk is removed before a build. */
  org_cache_bytes: 40 * GIB,
  /** Usage of that disk in percent above which the least recently used images are removed before a build. */
  cache_full_percent: 60,
  /** Build arguments, and build secrets, of one build. Past it: 400 `invalid_request`. */
  variables: 64,
  /** Length of the value of one of them. Past it: 400 `invalid_request`. */
  variable_chars: 65_536,
  /** Base images of one Dockerfile. Past it: the build is `failed`. */
  base_images: 16,
  /** Base images kept ready for builds; the least recently used one is removed. */
  bases_kept: 8,
} as const;

export type BuildLimits = { readonly [Name in keyof typeof BUILD_LIMITS]: number };
