/** Limits of Git repositories and pushes. Each comment says what happens when the limit is reached. */
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const MINUTE = 60_000;

export const GIT_LIMITS = {
  /** What one push may send. Past it: the push is rejected, and names the limit. */
  push_bytes: 512 * MIB,
  /** The request of a fetch or clone. Past it: 413 `payload_too_large`. */
  fetch_request_bytes: 16 * MIB,
  /** The repository of one app. Full: 422 `limit_reached`, after unused objects were removed. */
  repository_bytes: GIB,
  /** All repositories of one organization. Full: 422 `limit_reached`. */
  org_repositories_bytes: 10 * GIB,
  /** Free space that a push leaves on the disk. Past it: 503 `storage_full`. */
  repository_disk_kept_bytes: 512 * MIB,
  /** Branches and tags that one push may change. Past it: the push is rejected. */
  refs_per_push: 100,
  /** Characters of the full name of a branch or tag. Past it: the push is rejected. */
  ref_name_chars: 200,
  /** Branches that one push may deploy, one after the other. Past it: the push is rejected. */
  deploys_per_push: 3,
  /** Files of a commit that is deployed. Past it: the push is rejected. */
  tree_entries: 50_000,
  /** Their bytes together. Past it: the push is rejected. */
  tree_bytes: GIB,
  /** Pushes at a time in one process. One more: 503 `overloaded`. */
  pushes_parallel: 8,
  /** Fetches and clones at a time in one process. One more: 503 `overloaded`. */
  fetches_parallel: 8,
  /** A push with its builds and deploys may take this long; then it is ended, and nothing of it is kept. */
  push_ms: 90 * MINUTE,
  /** A fetch or clone may take this long; then its connection is closed. */
  fetch_ms: 10 * MINUTE,
  /** One step of Git beside the transfer, such as the checkout. Past it: the push is rejected. */
  git_step_ms: 2 * MINUTE,
  /** Address space of a Git process. Past it: Git ends, and the push is rejected. */
  git_memory_bytes: 2 * GIB,
  /** CPU time of a Git process, in seconds. Past it: the kernel ends it, and the push is rejected. */
  git_cpu_s: 600,
  /** Packs of a repository; with more, they are repacked into one after the push. */
  packs_kept: 20,
  /** Previews that the settings of one app may allow. More: 400 `invalid_request`. */
  previews_per_app: 20,
  /** Previews of one organization. One more: 422 `limit_reached`. */
  previews_per_org: 50,
  /** Previews that one look for those to delete takes up; the others wait for the next. */
  previews_per_sweep: 20,
  /** The longest time until a preview without a push is deleted. More: 400 `invalid_request`. */
  preview_days: 90,
  /** Repositories elsewhere whose pushes deploy one app. One more: 422 `limit_reached`. */
  webhooks_per_app: 5,
  /** Characters of the address of such a repository. More: 400 `invalid_request`. */
  repository_url_chars: 500,
  /** Characters of a user name or password for it. More: 400 `invalid_request`. */
  credential_chars: 1000,
  /** The body of an event. Past it: 413 `payload_too_large`. */
  event_bytes: 8 * MIB,
  /** An event's body has to be here by then. Past it: 401 `unauthorized`. */
  event_ms: MINUTE,
  /** Events of one webhook that wait or are worked on. One more: 503 `overloaded`. */
  webhook_queue: 20,
  /** Events of one webhook that are remembered after they ended, so that a repeat is known; older ones are forgotten. */
  webhook_deliveries: 200,
  /** Characters of the id that a service gives to a delivery; the rest is left out. */
  delivery_name_chars: 64,
  /** Deploys of webhooks at a time in one process; the others wait. */
  webhook_deploys_parallel: 2,
  /** A list of branches from a repository elsewhere. Past it: the delivery fails. */
  remote_answer_bytes: MIB,
  /** Commits that a fetch says to be here already; of more, some may be sent again. */
  remote_haves: 256,
  /** A connection to a repository elsewhere. Past it: the delivery fails. */
  remote_connect_ms: 20_000,
  /** What a deploy may print into a push; the rest is left out. */
  push_output_bytes: 4 * MIB,
} as const;

export type GitLimits = { readonly [Name in keyof typeof GIT_LIMITS]: number };
