/** Deploys from Git, put together: part of wiring/machines.ts, on a page of its own. */
import { join } from "node:path";
import type { AppService } from "#apps/service.ts";
import { principalOf } from "#auth/guard.ts";
import type { OrgService } from "#auth/orgs.ts";
import type { Principal } from "#auth/principal.ts";
import type { TokenService } from "#auth/tokens.ts";
import { ALL_ACTIONS, type Caveat } from "#core/caveats.ts";
import type { Clock } from "#core/clock.ts";
import { repeatableIds } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import { attenuate, parse, serialize } from "#core/macaroon.ts";
import type { Sealer } from "#core/sealer.ts";
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

interface Needs {
  guard: Guard;
  apps: AppService;
  tokens: TokenService;
  orgs: OrgService;
  sealer: Sealer;
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
    tokenFor(needs, principalOf(caller), app, org_slug);
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

/**
 * The pusher's token, good for this app and as long as a push may take. A full-access token cannot be narrowed: one is
 * made from it, the same one for every push to the app, and it is revoked with its maker.
 */
async function tokenFor(
  { tokens, orgs, sealer, clock }: Needs,
  principal: Principal,
  app: GitApp,
  org_slug: string,
): Promise<string> {
  const not_after_s = Math.ceil((clock.now() + GIT_LIMITS.push_ms) / 1000);
  const narrow: Caveat[] = [
    { type: "apps", apps: { [app.name]: ALL_ACTIONS } },
    { type: "validity", not_before_s: 0, not_after_s },
  ];
  if (principal.kind !== "full") return principal.attenuated(narrow);
  const org = await orgs.get(org_slug);
  const seed = sealer.derive(`git push ${principal.token_id} ${app.id}`);
  const wanted = { org, kind: "deploy", name: principal.name, maker: principal, app: app.name } as const;
  const { text } = await tokens.create(
    { ...wanted, expiry_ms: LIMITS.token_expiry_ms },
    repeatableIds(seed, org.created_at),
  );
  return serialize(attenuate(parse(text), narrow));
}
