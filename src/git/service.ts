import { fail } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Confinement } from "./confinement.ts";
import type { GitLimits } from "./limits.ts";
import type { Previews } from "./previews.ts";
import { Pushes } from "./pushes.ts";
import { type Interrupted, Repositories } from "./repositories.ts";
import type { GitStore } from "./store.ts";
import type { Turns } from "./turns.ts";
import { DEFAULT_BRANCH, type GitApp, type GitSettings } from "./types.ts";

interface Parts {
  store: GitStore;
  previews: Previews;
  turns: Turns;
  confinement: Confinement;
  /** The folder of all repositories. */
  dir: string;
  limits: GitLimits;
  log: Log;
  /** The platform's own address. */
  url(): string;
  /** Marks releases that an interrupted push had begun. */
  interrupted(found: Interrupted): Promise<void>;
}

const HINT = "deploy with `hangar deploy` instead";

/** Git repositories of apps, and what a push to them does. */
export class GitService {
  readonly #parts: Parts;
  readonly repositories: Repositories;
  readonly previews: Previews;
  readonly pushes: Pushes;
  #expiring: Promise<void> | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { dir, confinement, limits, log, previews, turns, url } = parts;
    this.previews = previews;
    this.repositories = new Repositories({ dir, confinement, limits });
    this.pushes = new Pushes({ repositories: this.repositories, confinement, limits, log, previews, turns, url });
  }

  async start(): Promise<void> {
    for (const found of this.repositories.start()) await this.#parts.interrupted(found);
    await this.#sweep();
    // Its machines may take a while to end.
    this.#expiring = this.previews.expire();
  }

  async close(): Promise<void> {
    await this.pushes.close();
    await this.#expiring;
    await this.previews.close();
  }

  /** Removes repositories of deleted apps, and previews whose time is over. */
  async expire(): Promise<void> {
    await this.#sweep();
    await this.previews.expire();
  }

  async #sweep(): Promise<void> {
    await this.repositories.sweep((id) => this.#parts.store.hasApp(id));
  }

  refuseUnable(): void {
    const problem = this.#parts.confinement.problem();
    if (problem) fail("git_refused", `this platform has no Git repositories: ${problem}`, { hint: HINT });
  }

  async settings(app_id: string): Promise<GitSettings> {
    return (await this.#parts.store.settings(app_id)) ?? { deploy_branch: DEFAULT_BRANCH };
  }

  async putSettings(app_id: string, change: Partial<GitSettings>): Promise<GitSettings> {
    const settings = { ...(await this.settings(app_id)), ...change };
    this.refuseUnable();
    if (!(await this.#parts.store.putSettings(app_id, settings)))
      fail("not_found", "the app was deleted in the meantime");
    return settings;
  }

  /** Bytes of the repository, or undefined before the first push. */
  async repositoryBytes(app: GitApp): Promise<number | undefined> {
    return this.repositories.has(app) ? await this.repositories.bytes(app) : undefined;
  }
}
