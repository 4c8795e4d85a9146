import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Release, ReleaseOutcome, ReleasePage, ReleaseStore } from "./release-store.ts";

interface NewRelease {
  description?: string | undefined;
  message?: string | undefined;
  git_commit?: string | undefined;
  git_branch?: string | undefined;
  strategy?: string | undefined;
  definition: unknown;
  image?: string | undefined;
  image_digest?: string | undefined;
  /** The version this one is based on; refused when another was created in between. */
  after?: number | undefined;
  /** Seconds for which the deployer may be silent. */
  lease_ttl?: number | undefined;
}

interface Parts {
  store: ReleaseStore;
  clock: Clock;
  /** A release that is to be renewed was begun. */
  onLease(): void;
}

/** Records deploys: a release is stored before the deploy begins. */
export class ReleaseService {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  list(app_id: string, page: ReleasePage): Promise<Omit<Release, "definition">[]> {
    return this.#parts.store.releases(app_id, page);
  }

  running: ReleaseStore["running"] = (org_id, page) => this.#parts.store.running(org_id, page);

  async get(app_id: string, version: number): Promise<Release> {
    const release = await this.#parts.store.findRelease(app_id, version);
    return (
      release ?? fail("not_found", `there is no release ${version}; the newest ${LIMITS.releases_per_app} are kept`)
    );
  }

  async create(app_id: string, created_by: string, wanted: NewRelease): Promise<Release> {
    const now = this.#parts.clock.now();
    const release = {
      app_id,
      status: "running" as const,
      description: wanted.description ?? "",
      message: wanted.message ?? "",
      git_commit: wanted.git_commit ?? null,
      git_branch: wanted.git_branch ?? null,
      failure: null,
      progress: null,
      strategy: wanted.strategy ?? "",
      definition: JSON.stringify(wanted.definition),
      image: wanted.image ?? null,
      image_digest: wanted.image_digest ?? null,
      lease_ms: wanted.lease_ttl === undefined ? null : wanted.lease_ttl * 1000,
      created_by,
      created_at: now,
      updated_at: now,
    };
    const made = await this.#parts.store.insertRelease(release, LIMITS.releases_per_app, wanted.after);
    if (made === "behind") {
      fail("conflict", `another release came after version ${wanted.after}`, { hint: "look at it, then deploy again" });
    }
    if (made && made.lease_ms !== null) this.#parts.onLease();
    return made ?? fail("not_found", "the app was deleted in the meantime");
  }

  /** Ends the release, or renews its lease; what has ended stays as it is. */
  async setOutcome(app_id: string, version: number, outcome: ReleaseOutcome): Promise<Release> {
    const done = await this.#parts.store.putStatus(app_id, version, outcome, this.#parts.clock.now());
    const release = await this.get(app_id, version);
    if (!done && release.status !== outcome.status)
      fail("conflict", `release ${version} has ended already: it is ${release.status}${because(release)}`, {
        hint: "`hangar releases` lists what was deployed since",
      });
    return release;
  }
}

const because = ({ failure }: Release): string => (failure === null ? "" : `, because ${failure}`);
