/** A whole deploy: creates the app if missing, records the release, executes the plan, and records the outcome. */
import { ClientError } from "#client/client.ts";
import { messageOf } from "#core/assert.ts";
import { LIMITS } from "#core/limits.ts";
import { splitWords } from "../app-file/units.ts";
import { LiveStatus } from "../live-status.ts";
import { egressBody, egressText } from "../network/egress.ts";
import { offersServices, openApp } from "../network/open.ts";
import { type Context, UsageError } from "../verb.ts";
import { setAlerts } from "./alerts.ts";
import type { Definition } from "./definition.ts";
import { failureText, MachineFailed } from "./failure.ts";
import type { GitState } from "./git.ts";
import { imageText, pinned } from "./image.ts";
import { DeployLease, LEASE_S, ReleaseLost } from "./lease.ts";
import { clearLeftovers, leftoversOf } from "./leftovers.ts";
import { machinesOf, runOnce } from "./machines.ts";
import type { Place } from "./place.ts";
import { type Plan, planOf, STRATEGIES, type Strategy } from "./plan.ts";
import { Rollout } from "./run.ts";
import { releaseCommandMs, type Timing, waitMs } from "./timing.ts";
import { untilNoneRuns } from "./turn.ts";
import { UndoLog } from "./undo.ts";

/** Options beside the definition. */
export interface ScaleOptions {
  counts?: Record<string, number>;
  /** Existing machines stay; only their number changes. */
  keep?: boolean;
  /** Machines that were created without a deploy are adopted by the first group. */
  adopt?: boolean;
  /** The app will be made: nothing is asked about it, which a token of another app may not do. */
  is_new?: boolean;
}

interface ReleaseOptions extends ScaleOptions {
  description: string;
  /** Why it is deployed. */
  message?: string | undefined;
  git?: GitState;
  timing: Timing;
  /** Groups without checks get that of their image. */
  image_checks?: boolean;
  /** Set before anything of the release runs. */
  secrets?: Readonly<Record<string, string>>;
  /** Creates the app if missing, in this organization or the token's own. */
  new_app?: { org_slug: string | undefined };
}

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
  { counts = {}, keep = false, adopt = false, is_new = false }: ScaleOptions = {},
): Promise<Plan> {
  const machines = is_new ? [] : await machinesOrNone(context, app_name);
  const { strategy, max_unavailable = UNAVAILABLE } = definition;
  const leftovers = await leftoversOf(context, app_name, machines);
  return planOf(definition.groups, machines, { strategy, counts, max_unavailable, keep, adopt, leftovers });
}

/** A new app has none. */
async function machinesOrNone(context: Context, app_name: string): ReturnType<typeof machinesOf> {
  return await machinesOf({ context, app_name }).catch((thrown: unknown) => {
    if (isNotFound(thrown)) return [];
    throw thrown;
  });
}

export interface Released {
  version: number;
  image: string;
  image_digest: string;
  plan: Plan;
}

/** Fails with the reason, after a rollback. */
export async function release(
  context: Context,
  app_name: string,
  given: Definition,
  options: ReleaseOptions,
): Promise<Released> {
  const place: Place = {
    context,
    app_name,
    region: given.region,
    wait_ms: waitMs(given, options.timing),
    stable_ms: options.timing.stable_ms,
    status: new LiveStatus(),
    undo: new UndoLog(),
    lease: new DeployLease(context, app_name),
  };
  // Impossible plans are refused before anything is written.
  await plan(context, app_name, given, options);
  await untilNoneRuns(context, app_name, place.status);
  try {
    if (options.new_app) await ensureApp(place, options.new_app.org_slug);
    if (Object.keys(options.secrets ?? {}).length > 0)
      await context.client.call("POST /v1/apps/:app_name/secrets", {
        params: { app_name },
        body: { values: { ...options.secrets } },
      });
    const definition = await pinned(context, app_name, given, options);
    if (definition.egress) await setEgress(place, definition.egress);
    if (definition.alerts !== undefined) await setAlerts(place, definition.alerts);
    const released = await carryOut(place, definition, options);
    // The machines run: a failure to open ports does not fail the release.
    if (definition.groups.some(({ config }) => offersServices(config))) await openApp(context, app_name);
    return released;
  } catch (thrown) {
    throw await undone(place, thrown);
  } finally {
    place.lease.end();
  }
}

async function carryOut(place: Place, definition: Definition, options: ReleaseOptions): Promise<Released> {
  const { context, app_name, status } = place;
  const version = await begin(place, definition, options);
  place.lease.begin(version);
  status.say(`Release ${version} of ${app_name}: ${imageText(definition)}, ${definition.strategy}`);
  const end = (outcome: "complete" | "failed") =>
    context.client.call("POST /v1/apps/:app_name/releases/:version", {
      params: { app_name, version: String(version) },
      body: { status: outcome, ...(place.failure === undefined ? {} : { failure: place.failure }) },
    });
  // Runs last in a rollback, when no machine of the release runs any more.
  place.undo.add(`release ${version} is marked as failed`, () => end("failed"));
  const [first] = definition.groups;
  if (definition.release_command && first && !options.keep) {
    status.say(`Release command: ${definition.release_command}`);
    place.lease.report(`release command: ${definition.release_command}`);
    const wait_ms = releaseCommandMs(definition, options.timing);
    await runOnce({ ...place, wait_ms }, first, {
      what: "the release command",
      command: splitWords(definition.release_command),
      kind: "release",
    });
  }
  const made = await plan(context, app_name, definition, options);
  await clearLeftovers(place, made.leftovers);
  const rollout = new Rollout(place, version);
  await rollout.run(made);
  place.lease.signal.throwIfAborted();
  await end("complete");
  place.undo.clear();
  await rollout.finish(made);
  return { version, image: definition.image, image_digest: definition.digest ?? "", plan: made };
}

/** Records the release; returns its version. */
async function begin({ context, app_name }: Place, definition: Definition, options: ReleaseOptions): Promise<number> {
  const params = { app_name };
  const { description, message, git = {} } = options;
  const { strategy, image, digest } = definition;
  const { releases } = await context.client.call("GET /v1/apps/:app_name/releases", { params, query: { limit: 1 } });
  const { version } = await context.client.call("POST /v1/apps/:app_name/releases", {
    params,
    body: {
      description,
      ...(message === undefined ? {} : { message }),
      ...git,
      strategy,
      definition,
      image,
      image_digest: digest,
      lease_ttl: LEASE_S,
      after: releases[0]?.version ?? 0,
    },
  });
  return version;
}

/** Reports the failure while the machine still exists, then rolls back. Returns the error to throw. */
async function undone(place: Place, thrown: unknown): Promise<unknown> {
  const { status, undo } = place;
  // What another deploy may have changed meanwhile is left as it is.
  if (undo.size === 0 || thrown instanceof ReleaseLost) return thrown;
  place.failure = messageOf(thrown).slice(0, LIMITS.description_chars);
  status.say(thrown instanceof MachineFailed ? failureText(thrown) : `Failed: ${messageOf(thrown)}`);
  status.say("Rolling back:");
  place.lease.report("rolling back");
  const steps = await undo.run(({ what, error }) =>
    status.say(error === undefined ? `  undone: ${what}` : `  could not undo ${what}: ${error}`),
  );
  if (!(thrown instanceof ClientError)) return thrown;
  return new ClientError(thrown.http, { ...thrown.body, error: thrown.message, undone: steps }, thrown);
}

/** Creates the app if missing. */
async function ensureApp({ context: { client }, app_name, status, undo }: Place, org_slug: string | undefined) {
  const params = { app_name };
  try {
    await client.call("GET /v1/apps/:app_name", { params });
  } catch (thrown) {
    if (!isNotFound(thrown)) throw thrown;
    await client.call("POST /v1/apps", { body: { app_name, ...(org_slug ? { org_slug } : {}) } });
    undo.add(`app ${app_name}`, () => client.call("DELETE /v1/apps/:app_name", { params, query: { force: true } }));
    status.log(`created app ${app_name}`);
  }
}

/** Set before the release runs; restored on failure. */
async function setEgress(
  { context: { client }, app_name, undo, status }: Place,
  body: NonNullable<Definition["egress"]>,
) {
  const params = { app_name };
  const { mode, allow } = await client.call("GET /v1/apps/:app_name/egress", { params });
  if (mode === body.mode && allow.join() === body.allow.join()) return;
  const before = egressBody(mode === "list" ? allow : [mode]);
  undo.add("the egress policy", () => client.call("PUT /v1/apps/:app_name/egress", { params, body: before }));
  await client.call("PUT /v1/apps/:app_name/egress", { params, body });
  status.log(`set the egress policy: ${egressText(body).replaceAll(/\s+/g, " ")}`);
}

const isNotFound = (thrown: unknown): boolean => thrown instanceof ClientError && thrown.http === 404;
