/** Deploys from Git, put together: part of wiring/machines.ts, on a page of its own. */
import { join } from "node:path";
import type { AppService } from "#apps/service.ts";
import { principalOf } from "#auth/guard.ts";
import type { Clock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import { NamespaceConfinement } from "#drivers/git/confinement.ts";
import { GIT_LIMITS } from "#git/limits.ts";
import type { Interrupted } from "#git/repositories.ts";
import { gitRoutes } from "#git/routes.ts";
import { GitService } from "#git/service.ts";
import type { GitApp } from "#git/types.ts";
import type { Caller, Guard } from "#http/access.ts";
import type { Row } from "#http/route.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlGitStore } from "#stores/sql/git.ts";
import { sqlReleaseStore } from "#stores/sql/releases.ts";
import { type DeployTokenNeeds, deployTokenFor } from "./deploy-token.ts";

interface Needs extends DeployTokenNeeds {
  guard: Guard;
  apps: AppService;
  dir: DataDir;
  clock: Clock;
  log: Log;
  /** The platform's addresses; empty before they are known. */
  facts: { base_url: string; own_url: string };
}

const RESTARTED = "the platform was restarted while this release was deployed by a push; push again";

export function openGit(database: Database, needs: Needs): { git: GitService; rows: Row[] } {
  const { guard, apps, dir, clock, log, facts } = needs;
  const root = dir.file("git");
  const limits = GIT_LIMITS;
  const installed = join(import.meta.dirname, "../..");
  const confinement = new NamespaceConfinement({ root: join(root, "root"), installed, limits });
  const git = new GitService({
    store: sqlGitStore(database),
    confinement,
    dir: join(root, "repositories"),
    limits,
    log,
    url: () => facts.own_url,
    interrupted: (found) => markInterrupted(database, found, clock),
  });
  const deployToken = (caller: Caller, app: GitApp, org_slug: string): Promise<string> =>
    deployTokenFor(needs, principalOf(caller), { app, org_slug, purpose: "git push", lasts_ms: GIT_LIMITS.push_ms });
  const base_url = (): string => facts.base_url;
  return { git, rows: gitRoutes({ git, guard, apps, confinement, limits, clock, deployToken, base_url }) };
}

/** Releases that a push had begun when the process ended. */
async function markInterrupted(database: Database, { app_id, commits }: Interrupted, clock: Clock): Promise<void> {
  const releases = sqlReleaseStore(database);
  const found = await releases.releases(app_id, { limit: LIMITS.releases_per_app });
  for (const { version, status, git_commit } of found)
    if (status === "running" && git_commit !== null && commits.includes(git_commit))
      await releases.putStatus(app_id, version, { status: "failed", failure: RESTARTED }, clock.now());
}
