/** Deploys from Git, put together: part of wiring/machines.ts, on a page of its own. */
import { join } from "node:path";
import { principalOf } from "#auth/guard.ts";
import { ALL_ACTIONS, type Caveat } from "#core/caveats.ts";
import type { Clock } from "#core/clock.ts";
import type { Ids } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import { NamespaceConfinement } from "#drivers/git/confinement.ts";
import type { Confinement } from "#git/confinement.ts";
import { GIT_LIMITS } from "#git/limits.ts";
import type { PreviewTokenInput } from "#git/preview-routes.ts";
import { Previews } from "#git/previews.ts";
import { RemoteReader } from "#git/remote-repository.ts";
import type { Interrupted } from "#git/repositories.ts";
import { gitRoutes } from "#git/routes.ts";
import { GitService } from "#git/service.ts";
import { Turns } from "#git/turns.ts";
import type { GitApp } from "#git/types.ts";
import { GitWebhooks } from "#git/webhooks.ts";
import type { Caller, Guard } from "#http/access.ts";
import type { Row } from "#http/route.ts";
import type { ProxyModule } from "#proxy/module.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlGitStore } from "#stores/sql/git.ts";
import { sqlGitWebhookStore } from "#stores/sql/git-webhooks.ts";
import { sqlPreviewStore } from "#stores/sql/previews.ts";
import { sqlReleaseStore } from "#stores/sql/releases.ts";
import { deployTokenFor } from "./deploy-token.ts";
import { checkAddress, narrowed, openRemote, webhookTokenFor } from "./git-webhooks.ts";
import { type PreviewNeeds, previewApps, previewTokenFor } from "./previews.ts";

interface Needs extends Omit<PreviewNeeds, "hasApp"> {
  guard: Guard;
  sealer: Sealer;
  dir: DataDir;
  proxy: Pick<ProxyModule, "urls">;
  log: Log;
  /** The platform's addresses; empty before they are known. */
  facts: { base_url: string; own_url: string };
}

const RESTARTED = "the platform was restarted while this release was deployed by a push; push again";

/** Deploys from Git: repositories, previews and webhooks. */
interface GitModule {
  /** Clears what an earlier process left. */
  start(): Promise<void>;
  /** Goes on with what it had not finished; the API must be there. */
  resume(): Promise<void>;
  expire(): Promise<void>;
  close(): Promise<void>;
}

export function openGit(
  database: Database,
  settings: Pick<Settings, "network">,
  needs: Needs,
): { git: GitModule; rows: Row[] } {
  const { guard, apps, dir, clock, log, facts, proxy } = needs;
  const root = dir.file("git");
  const limits = GIT_LIMITS;
  const installed = join(import.meta.dirname, "../..");
  const confinement = new NamespaceConfinement({ root: join(root, "root"), installed, limits });
  const store = sqlGitStore(database);
  const previewStore = sqlPreviewStore(database);
  const more_needs = { ...needs, hasApp: store.hasApp };
  const previews = new Previews({ store: previewStore, apps: previewApps(more_needs), clock, limits, log });
  apps.onDelete((app_id) => previews.appDeleted(app_id));
  const turns = new Turns();
  const url = (): string => facts.own_url;
  const own = { store, previews, turns, confinement, limits, log, url };
  const git = new GitService({
    ...own,
    dir: join(root, "repositories"),
    interrupted: (found) => markInterrupted(database, previews, found, clock),
  });
  const { webhooks, close } = openWebhooks(database, settings, { ...more_needs, git, turns, confinement, url });
  const served = { git, previews, webhooks, guard, apps, confinement, limits, clock };
  const parts = {
    ...served,
    deployToken: (caller: Caller, app: GitApp, org_slug: string) =>
      deployTokenFor(needs, principalOf(caller), { app, org_slug, purpose: "git push", lasts_ms: GIT_LIMITS.push_ms }),
    previewToken: (input: PreviewTokenInput) => previewTokenFor(more_needs, previewStore, input),
    webhookToken: (caller: Caller, app: GitApp, org_slug: string, ids: Ids) =>
      webhookTokenFor(needs, { caller, app, org_slug, ids }),
    base_url: () => facts.base_url,
    urls: (app_id: string) => proxy.urls(app_id),
  };
  const module: GitModule = {
    start: () => git.start(),
    resume: () => webhooks.start(),
    expire: () => git.expire(),
    async close() {
      await webhooks.close();
      await git.close();
      await close();
    },
  };
  return { git: module, rows: gitRoutes(parts) };
}

interface WebhookNeeds extends Needs {
  git: GitService;
  turns: Turns;
  confinement: Confinement;
  url(): string;
}

function openWebhooks(
  database: Database,
  { network }: Pick<Settings, "network">,
  { git, turns, confinement, url, ...needs }: WebhookNeeds,
): { webhooks: GitWebhooks; close(): Promise<void> } {
  const { sealer, dir, clock, log } = needs;
  const limits = GIT_LIMITS;
  const { send, close } = openRemote(network.git_allow_private);
  const { repositories, previews } = git;
  const own = { repositories, previews, turns, confinement, sealer, clock, log, limits, url };
  const webhooks = new GitWebhooks({
    ...own,
    store: sqlGitWebhookStore(database),
    remote: new RemoteReader(send, limits),
    revoke: (org_id, token_id) => needs.tokens.revoke(org_id, token_id),
    node_id: dir.node_id,
    checkAddress: (repository) => {
      git.refuseUnable();
      return checkAddress(repository, network.git_allow_private);
    },
    deployBranch: async (app_id) => (await git.settings(app_id)).deploy_branch,
    appOf: sqlGitStore(database).app,
    deployToken: (text, app) => narrowed(needs, text, ofOnePush(app, clock)),
  });
  return { webhooks, close };
}

/** Releases that a push had begun when the process ended. A preview that never ran goes. */
async function markInterrupted(
  database: Database,
  previews: Previews,
  { app_id, commits, previews: branches }: Interrupted,
  clock: Clock,
): Promise<void> {
  await failReleases(database, app_id, commits, clock);
  for (const branch of branches) {
    const preview = await previews.abandoned(app_id, branch);
    if (preview) await failReleases(database, preview.id, commits, clock);
  }
}

async function failReleases(
  database: Database,
  app_id: string,
  commits: readonly string[],
  clock: Clock,
): Promise<void> {
  const releases = sqlReleaseStore(database);
  const found = await releases.releases(app_id, { limit: LIMITS.releases_per_app });
  for (const { version, status, git_commit } of found)
    if (status === "running" && git_commit !== null && commits.includes(git_commit))
      await releases.putStatus(app_id, version, { status: "failed", failure: RESTARTED }, clock.now());
}

/** Good for this app, and as long as a push may take. */
function ofOnePush(app: GitApp, clock: Clock): Caveat[] {
  const not_after_s = Math.ceil((clock.now() + GIT_LIMITS.push_ms) / 1000);
  return [
    { type: "apps", apps: { [app.name]: ALL_ACTIONS } },
    { type: "validity", not_before_s: 0, not_after_s },
  ];
}
