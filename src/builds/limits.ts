/** Limits of builds. Each comment says what happens when the limit is reached. */
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const MINUTE = 60_000;
const DAY = 24 * 3_600_000;

export const BUILD_LIMITS = {
  /** Files, folders and links of one build context. Past it: 422 `limit_reached`. */
  context_entries: 50_000,
  /** The list of them, as JSON. Past it: 413 `payload_too_large`. */
  context_list_bytes: 16 * MIB,
  /** Files of one context together, each as often as it is in it. Past it: 422 `limit_reached`. */
  context_bytes: 10 * GIB,
  /** Names in a path of a context. Past it: 400 `build_refused`. */
  context_depth: 64,
  /** The Dockerfile. Past it: the build is `failed`. */
  dockerfile_bytes: MIB,
  /** One file of a context. Past it: 413 `payload_too_large`. */
  file_bytes: 2 * GIB,
  /** Disk space of the files that an organization's contexts share. Past it: 422 `limit_reached`. */
  org_files_bytes: 10 * GIB,
  /** How many they are. Past it: 422 `limit_reached`. */
  org_files: 200_000,
  /** A file that no build named for this long is removed. */
  file_kept_ms: 7 * DAY,
  /** Free space that uploads and contexts leave on the disk. Past it: 503 `storage_full`; a build is `failed`. */
  disk_kept_bytes: 512 * MIB,
  /** Builds of one organization that wait or run. Past it: 422 `limit_reached`. */
  builds_per_org: 20,
  /** The lists and variables of an organization's builds that wait or run, together. Past it: 422 `limit_reached`. */
  org_queue_bytes: 32 * MIB,
  /** Builds that run at a time in one process; the others wait. One organization has one at a time. */
  builds_parallel: 2,
  /** A process with builds looks this often whether one was cancelled through another process; a notification is sooner. */
  cancel_look_ms: 2000,
  /** How long a cancel waits for the build to end; then it is answered as it is. */
  cancel_wait_ms: 10_000,
  /** How long a build may run; then it is ended and `failed`. */
  build_ms: 30 * MINUTE,
  /** What a build may write to its log; the rest is left out, and the log says so. */
  log_bytes: 4 * MIB,
  /** Builds that are kept of an app; older ones are removed with their logs. */
  builds_per_app: 50,
  /** Memory of a build. Past it: the kernel ends a process of the build. */
  memory_mb: 2048,
  /** CPUs of a build. */
  cpus: 2,
  /** The disk with an app's layer cache and the image that is being built. Full: ENOSPC in the build. */
  cache_bytes: 20 * GIB,
  /** What those disks of an organization take. Past it: the disk that was used longest ago is removed before a build. */
  org_cache_bytes: 40 * GIB,
  /** Share of that disk, in hundredths, from which on the images used longest ago are removed before a build. */
  cache_full_percent: 60,
  /** Build arguments and secrets, each. Past it: 400 `invalid_request`. */
  variables: 64,
  /** The value of one of them. Past it: 400 `invalid_request`. */
  variable_chars: 65_536,
  /** Base images of one Dockerfile. Past it: the build is `failed`. */
  base_images: 16,
  /** Base images kept ready for builds; the one used longest ago goes first. */
  bases_kept: 8,
} as const;

export type BuildLimits = { readonly [Name in keyof typeof BUILD_LIMITS]: number };
