/** A deploy as a whole: the app is there, the release is written down, the plan is carried out, the outcome is too. */
import { ClientError } from "#client/client.ts";
import { parseDuration } from "#core/durations.ts";
import type { Group } from "../app-file/groups.ts";
import { splitWords, time } from "../app-file/units.ts";
import { offersServices, openApp } from "../network/open.ts";
import { type Context, UsageError } from "../verb.ts";
import { machinesOf, type Place, runOnce } from "./machines.ts";
import { type Plan, planOf, STRATEGIES, type Strategy } from "./plan.ts";
import { Rollout } from "./run.ts";

/** All that a release needs to be done again: what is kept of it. */
export interface Definition {
  image: string;
  strategy: Strategy;
  region?: string;
  groups: Group[];
  release_command?: string;
  wait_timeout?: string;
  max_unavailable?: number;
}

/** What is asked for beside the definition. */
export interface Wish {
  counts?: Record<string, number>;
  /** Machines that are there stay as they are; only their number changes. */
  keep?: boolean;
}

const WAIT_MS = 5 * 60_000;
const UNAVAILABLE = 0.33;

export function strategyOf(text: string | undefined): Strategy {
  const name = text === "blue-green" ? "bluegreen" : (text ?? "rolling");
  const found = STRATEGIES.find((known) => known === name);
  if (!found) throw new UsageError(`${name} is no strategy; there are ${STRATEGIES.join(", ")}`);
  return found;
}

export async function plan(
  context: Context,
  app_name: string,
  definition: Definition,
  { counts = {}, keep = false }: Wish = {},
): Promise<Plan> {
  const machines = await machinesOf({ context, app_name }).catch((thrown: unknown) => {
    // An app that is yet to be made has none.
    if (thrown instanceof ClientError && thrown.http === 404) return [];
    throw thrown;
  });
  const { strategy, max_unavailable = UNAVAILABLE } = definition;
  return planOf(definition.groups, machines, { strategy, counts, max_unavailable, keep });
}

export async function release(
  context: Context,
  app_name: string,
  definition: Definition,
  { description, ...wish }: Wish & { description: string },
): Promise<{ version: number; plan: Plan }> {
  const { client, say } = context;
  const params = { app_name };
  const { releases } = await client.call("GET /v1/apps/:app_name/releases", { params, query: { limit: 1 } });
  const { version } = await client.call("POST /v1/apps/:app_name/releases", {
    params,
    body: { description, strategy: definition.strategy, definition, after: releases[0]?.version ?? 0 },
  });
  const end = (status: "complete" | "failed") =>
    client.call("POST /v1/apps/:app_name/releases/:version", {
      params: { app_name, version: String(version) },
      body: { status },
    });
  say(`Release ${version} of ${app_name}: ${definition.image}, ${definition.strategy}`);
  let made: Plan;
  try {
    const place: Place = { context, app_name, region: definition.region, wait_ms: waitOf(definition) };
    const [first] = definition.groups;
    if (definition.release_command && first) {
      say(`Release command: ${definition.release_command}`);
      await runOnce(place, first, splitWords(definition.release_command));
    }
    made = await plan(context, app_name, definition, wish);
    await new Rollout(place, version).run(made);
    await end("complete");
  } catch (thrown) {
    await end("failed").catch(() => {});
    throw thrown;
  }
  // It runs by now: that it cannot be opened to the world does not make the release a failed one.
  if (definition.groups.some(({ config }) => offersServices(config))) await openApp(context, app_name);
  return { version, plan: made };
}

function waitOf({ wait_timeout }: Definition): number {
  return wait_timeout === undefined ? WAIT_MS : (parseDuration(time(wait_timeout, "s")) ?? WAIT_MS);
}

/** Makes the app unless it is there. */
export async function ensureApp(
  { client, say }: Context,
  app_name: string,
  org_slug: string | undefined,
): Promise<void> {
  try {
    await client.call("GET /v1/apps/:app_name", { params: { app_name } });
  } catch (thrown) {
    if (!(thrown instanceof ClientError) || thrown.http !== 404) throw thrown;
    await client.call("POST /v1/apps", { body: { app_name, ...(org_slug ? { org_slug } : {}) } });
    say(`App ${app_name} is made`);
  }
}
