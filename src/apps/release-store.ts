import type { PageRequest } from "#core/list-page.ts";
import type { AppRange } from "./store.ts";

/** One deploy of an app: its definition and its outcome. */
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
  /** How far it is, as the deployer reported last: `2 of 5 machines: updated web-2`. */
  progress: string | null;
  strategy: string;
  /** The app's configuration file and its resolved form, as sent by the deployer: JSON. */
  definition: string;
  /** The image name as written by the deployer. */
  image: string | null;
  /** The digest it resolved to: `sha256:…` */
  image_digest: string | null;
  /** How long the deployer may be silent while the release runs; null when it did not promise to renew it. */
  lease_ms: number | null;
  /** Name of the token. */
  created_by: string;
  created_at: number;
  /** When it ended; while it runs, when it was last renewed. */
  updated_at: number;
}

/** A running release whose deployer renews it. */
export type LeasedRelease = Pick<Release, "app_id" | "version" | "updated_at"> & { lease_ms: number };

/** An image that a release needs for a rollback. */
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
  /** Left out, what was reported before stays. */
  progress?: string | undefined;
}

/** A release that is being deployed, in a list of its organization's. */
export type RunningRelease = Omit<Release, "definition"> & { app_name: string };

/** After a release's version. */
export type ReleasePage = PageRequest<readonly [version: number]>;

/** Stores releases; decides nothing. Implemented in stores/, tested by `release-store.suite.ts`. */
export interface ReleaseStore {
  /** Newest first, without definitions. */
  releases(app_id: string, page: ReleasePage): Promise<Omit<Release, "definition">[]>;
  /** The newest `limit` releases of each app, newest first, without definitions. */
  newestOfEach(range: AppRange, limit: number): Promise<Omit<Release, "definition">[]>;
  findRelease(app_id: string, version: number): Promise<Release | undefined>;
  /**
   * Inserts the app's next version; the newest `keep` older releases stay. Undefined when the app was deleted, "behind"
   * when `after` is given and is not the newest version.
   */
  insertRelease(
    release: Omit<Release, "version">,
    keep: number,
    after?: number,
  ): Promise<Release | "behind" | undefined>;
  /** The images of the newest `per_app` releases of every app, by app and version. */
  releaseImages(per_app: number): Promise<ReleaseImage[]>;
  /**
   * Ends a running release, or renews it with the status `running`. False when it does not run, or was renewed since
   * `renewed_at`.
   */
  putStatus(
    app_id: string,
    version: number,
    outcome: ReleaseOutcome,
    now: number,
    renewed_at?: number,
  ): Promise<boolean>;
  /** The organization's running releases, newest first. */
  running(
    org_id: string,
    page: PageRequest<readonly [created_at: number, app_id: string, version: number]>,
  ): Promise<RunningRelease[]>;
  /** All running releases that have a lease. */
  leased(): Promise<LeasedRelease[]>;
}
