/** Deploys of one app run one after the other: a deploy waits for the release that is being deployed. */
import { setTimeout } from "node:timers/promises";
import { ClientError } from "#client/client.ts";
import type { LiveStatus } from "../live-status.ts";
import type { Context } from "../verb.ts";

const LOOK_MS = 500;

/** Returns when no release of the app is being deployed. That of a deployer that was killed ends by itself. */
export async function untilNoneRuns(
  { client }: Context,
  app_name: string,
  status: Pick<LiveStatus, "say">,
): Promise<void> {
  for (let told = 0; ; ) {
    const running = await newest(client, app_name);
    if (running?.status !== "running" || running.lease_ttl === null) return;
    const { version, created_by, lease_ttl } = running;
    if (told !== version)
      status.say(
        `Release ${version} of ${app_name} is being deployed by ${created_by}: waiting for it (it ends ${lease_ttl} s after its deployer was last heard of)`,
      );
    told = version;
    await setTimeout(LOOK_MS);
  }
}

async function newest(client: Context["client"], app_name: string) {
  try {
    const { releases } = await client.call("GET /v1/apps/:app_name/releases", {
      params: { app_name },
      query: { limit: 1 },
    });
    return releases[0];
  } catch (thrown) {
    // A new app has none.
    if (thrown instanceof ClientError && thrown.http === 404) return undefined;
    throw thrown;
  }
}
