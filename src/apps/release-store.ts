import type { PageRequest } from "#core/list-page.ts";

/** One deploy of an app: what was to run, and how it went. */
export interface Release {
  app_id: string;
  /** 1, 2, 3 … within the app. */
  version: number;
  status: ReleaseStatus;
  /** What kind of change it was: `deploy`, `rollback to release 3`, `scale web=2`. */
  description: string;
  /** Why, as the deployer wrote it. */
  message: string;
  /** The commit that was deployed, with `-dirty` when files differed from it. */
  git_commit: string | null;
  git_branch: string | null;
  /** Why it failed. */
  failure: string | null;
  strategy: string;
  /** The app's configuration file and what it was turned into, as the deployer gave it: JSON. */
  definition: string;
  /** The image's name as the deployer wrote it. */
  image: string | null;
  /** What that name stood for: `sha256:…` */
  image_digest: string | null;
  /** Whose token it was. */
  created_by: string;
  created_at: number;
  updated_at: number;
}

/** An image that a release needs, for a rollback to it. */
export interface ReleaseImage {
  org_id: string;
  app_name: string;
  version: number;
  digest: string;
}

export type ReleaseStatus = "running" | "complete" | "failed";

export interface ReleaseOutcome {
  status: ReleaseStatus;
  failure: string | null;
}

/** After a release's version. */
export type ReleasePage = PageRequest<readonly [version: number]>;

/** Keeps and finds releases; decides nothing. Implemented in stores/, examined by `release-store.suite.ts`. */
export interface ReleaseStore {
  /** The newest first, without what they are made of. */
  releases(app_id: string, page: ReleasePage): Promise<Omit<Release, "definition">[]>;
  findRelease(app_id: string, version: number): Promise<Release | undefined>;
  /**
   * The next version of the app; of its older releases the newest `keep` stay. Undefined when the app is gone,
   * "behind" when `after` is given and is not the newest version.
   */
  insertRelease(
    release: Omit<Release, "version">,
    keep: number,
    after?: number,
  ): Promise<Release | "behind" | undefined>;
  /** The images of the newest `per_app` releases of every app, by app and version. */
  releaseImages(per_app: number): Promise<ReleaseImage[]>;
  /** False when there is no such release. */
  putStatus(app_id: string, version: number, outcome: ReleaseOutcome, now: number): Promise<boolean>;
}
