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
}

/** Records deploys: a release is stored before the deploy begins. */
export class ReleaseService {
  readonly #parts: { store: ReleaseStore; clock: Clock };

  constructor(parts: { store: ReleaseStore; clock: Clock }) {
    this.#parts = parts;
  }

  list(app_id: string, page: ReleasePage): Promise<Omit<Release, "definition">[]> {
    return this.#parts.store.releases(app_id, page);
  }

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
      strategy: wanted.strategy ?? "",
      definition: JSON.stringify(wanted.definition),
      image: wanted.image ?? null,
      image_digest: wanted.image_digest ?? null,
      created_by,
      created_at: now,
      updated_at: now,
    };
    const made = await this.#parts.store.insertRelease(release, LIMITS.releases_per_app, wanted.after);
    if (made === "behind") {
      fail("conflict", `another release came after version ${wanted.after}`, { hint: "look at it, then deploy again" });
    }
    return made ?? fail("not_found", "the app was deleted in the meantime");
  }

  async setOutcome(app_id: string, version: number, outcome: ReleaseOutcome): Promise<Release> {
    await this.#parts.store.putStatus(app_id, version, outcome, this.#parts.clock.now());
    return await this.get(app_id, version);
  }
}
