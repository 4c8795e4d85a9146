/** Limits of Git repositories and pushes. Each comment says what happens when the limit is reached. */
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const MINUTE = 60_000;

export const GIT_LIMITS = {
  /** Size of one push. Past it: the push is rejected with the limit's name. */
  push_bytes: 512 * MIB,
  /** Size of the request of a fetch or clone. Past it: 413 `payload_too_large`. */
  fetch_request_bytes: 16 * MIB,
  /** Size of the repository of one app. Full: 422 `limit_reached`, after unused objects were removed. */
  repository_bytes: GIB,
  /** Total size of the repositories of one organization. Full: 422 `limit_reached`. */
  org_repositories_bytes: 10 * GIB,
  /** Free space that a push leaves on the disk. Past it: 503 `storage_full`. */
  repository_disk_kept_bytes: 512 * MIB,
  /** Branches and tags changed by one push. Past it: the push is rejected. */
  refs_per_push: 100,
  /** Length of the full name of a branch or tag. Past it: the push is rejected. */
  ref_name_chars: 200,
  /** Branches deployed by one push, one after the other. Past it: the push is rejected. */
  deploys_per_push: 3,
  /** Files of a deployed commit. Past it: the push is rejected. */
  tree_entries: 50_000,
  /** Total size of these files. Past it: the push is rejected. */
  tree_bytes: GIB,
  /** Pushes in parallel in one process. One more: 503 `overloaded`. */
  pushes_parallel: 8,
  /** Fetches and clones in parallel in one process. One more: 503 `overloaded`. */
  fetches_parallel: 8,
  /** Time limit of a push with its builds and deploys. Past it: the push is aborted, and no objects are stored. */
  push_ms: 90 * MINUTE,
  /** Time for an aborted push to tell its client why. Past it: Git is killed. */
  push_end_ms: 2000,
  /** Time limit of a fetch or clone. Past it: its connection is closed. */
  fetch_ms: 10 * MINUTE,
  /** Timeout of one Git step other than the transfer, such as the checkout. Past it: the push is rejected. */
  git_step_ms: 2 * MINUTE,
  /** Address space of a Git process. Past it: Git fails, and the push is rejected. */
  git_memory_bytes: 2 * GIB,
  /** CPU time of a Git process, in seconds. Past it: the kernel kills it, and the push is rejected. */
  git_cpu_s: 600,
  /** Packs of a repository. Past it: they are repacked into one after the push. */
  packs_kept: 20,
  /** Maximum for the number of previews in an app's settings. More: 400 `invalid_request`. */
  previews_per_app: 20,
  /** Previews of one organization. One more: 422 `limit_reached`. */
  previews_per_org: 50,
  /** Expired previews deleted in one clean-up; further ones wait for the next. */
  previews_per_sweep: 20,
  /** Longest time after which a preview without a push is deleted. More: 400 `invalid_request`. */
  preview_days: 90,
  /** Connected repositories of one app. One more: 422 `limit_reached`. */
  webhooks_per_app: 5,
  /** Length of the URL of a connected repository. More: 400 `invalid_request`. */
  repository_url_chars: 500,
  /** Length of a user name or password for it. More: 400 `invalid_request`. */
  credential_chars: 1000,
  /** Size of the body of an event. Past it: 413 `payload_too_large`. */
  event_bytes: 8 * MIB,
  /** Time to receive the body of an event. Past it: 401 `unauthorized`. */
  event_ms: MINUTE,
  /** Queued and running events of one webhook. One more: 503 `overloaded`. */
  webhook_queue: 20,
  /** Completed events kept per webhook, to recognize repeated ones; older ones are deleted. */
  webhook_deliveries: 200,
  /** Length of the delivery id of a Git service; the rest is cut off. */
  delivery_name_chars: 64,
  /** Deploys of webhooks in parallel in one process; further ones wait. */
  webhook_deploys_parallel: 2,
  /** Size of the branch list of a connected repository. Past it: the delivery fails. */
  remote_answer_bytes: MIB,
  /** Commits that a fetch lists as present; of further ones, some may be sent again. */
  remote_haves: 256,
  /** Timeout of connecting to a connected repository. Past it: the delivery fails. */
  remote_connect_ms: 20_000,
  /** Size of a deploy's output in a push; the rest is omitted. */
  push_output_bytes: 4 * MIB,
} as const;

export type GitLimits = { readonly [Name in keyof typeof GIT_LIMITS]: number };
