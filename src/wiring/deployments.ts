/** Deploys that the platform runs itself, put together. */
import { join } from "node:path";
import { principalOf } from "#auth/guard.ts";
import type { Clock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import { DEPLOYMENT_LIMITS } from "#deployments/limits.ts";
import { deploymentRoutes } from "#deployments/routes.ts";
import { DeploymentService, type InterruptedDeployment } from "#deployments/service.ts";
import { ChildDeployCommand } from "#drivers/deployments/child-command.ts";
import type { Row } from "#http/route.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { sqlReleaseStore } from "#stores/sql/releases.ts";
import { type DeployTokenNeeds, deployTokenFor } from "./deploy-token.ts";

interface Needs extends DeployTokenNeeds {
  dir: DataDir;
  clock: Clock;
  log: Log;
  /** The platform's address; empty before it is known. */
  facts: { own_url: string };
}

const INTERRUPTED = "the platform ended while this release was deployed; deploy again";

export function openDeployments(database: Database, needs: Needs): { deployments: DeploymentService; rows: Row[] } {
  const { dir, clock, log, facts } = needs;
  const releases = sqlReleaseStore(database);
  const markFailed = async ({ app_id, after }: InterruptedDeployment): Promise<void> => {
    const outcome = { status: "failed" as const, failure: INTERRUPTED };
    for (const { version, status } of await releases.releases(app_id, { limit: LIMITS.releases_per_app }))
      if (status === "running" && version > after) await releases.putStatus(app_id, version, outcome, clock.now());
  };
  const root = dir.file("deployments");
  const deployments = new DeploymentService({
    command: new ChildDeployCommand({
      installed: join(import.meta.dirname, "../.."),
      cwd: join(root, "empty"),
      url: () => facts.own_url,
    }),
    dir: join(root, "running"),
    log,
    newestVersion: async (app_id) => (await releases.releases(app_id, { limit: 1 }))[0]?.version ?? 0,
    interrupted: markFailed,
  });
  const lasts_ms = DEPLOYMENT_LIMITS.deployment_ms;
  const rows = deploymentRoutes({
    deployments,
    deployToken: (caller, app, org_slug) =>
      deployTokenFor(needs, principalOf(caller), { app, org_slug, purpose: "deployment", lasts_ms }),
  });
  return { deployments, rows };
}
