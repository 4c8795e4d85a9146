/** Deploys an earlier release again. */
import { type Context, neededApp, type Result, textOption, UsageError, type Verb } from "../verb.ts";
import type { Definition } from "./definition.ts";
import { imageText } from "./image.ts";
import { planLines } from "./plan.ts";
import { plan, release, type ScaleOptions } from "./release.ts";
import { TIMING_OPTIONS, timingOf } from "./timing.ts";

export const APP: readonly [string, string] = ["-a, --app <app>", "the app"];
export const MESSAGE: readonly [string, string] = ["-m, --message <text>", "description of the release"];
export const DRY_RUN: readonly [string, string] = ["--dry-run", "print what would be done, and change nothing"];

/** Prefix of releases that only changed the number of machines. */
export const SCALE = "scale ";

/** The output of a dry run. */
export async function reported(
  context: Context,
  app_name: string,
  definition: Definition,
  options: ScaleOptions = {},
): Promise<Result> {
  const planned = await plan(context, app_name, definition, options);
  const lines = planLines(planned);
  return { data: { app_name, definition, plan: planned, lines }, text: lines.join("\n") || "nothing to do" };
}

export const rollback: Verb = {
  words: "rollback",
  summary: "Roll back to an earlier release",
  arguments: [["[version]", "release number (default: the last complete one before the current)"]],
  options: [APP, MESSAGE, ...TIMING_OPTIONS, DRY_RUN],
  examples: ["hangar rollback --app web"],
  async run(context, input) {
    const app_name = neededApp(input);
    const version = input.args[0] ?? (await lastGood(context, app_name));
    if (!/^[1-9]\d*$/.test(version)) throw new UsageError(`${version} is not a number of \`hangar releases\``);
    const { definition } = await context.client.call("GET /v1/apps/:app_name/releases/:version", {
      params: { app_name, version },
    });
    if (input.options["dryRun"] === true) return await reported(context, app_name, definition as Definition);
    const done = await release(context, app_name, definition as Definition, {
      description: `rollback to release ${version}`,
      message: textOption(input, "message"),
      timing: timingOf(input),
    });
    const what = imageText({ image: done.image, digest: done.image_digest });
    return { data: done, text: `${app_name} runs release ${done.version}, the same as ${version}: ${what}` };
  },
};

async function lastGood({ client }: Context, app_name: string): Promise<string> {
  const { releases: list } = await client.call("GET /v1/apps/:app_name/releases", { params: { app_name }, query: {} });
  // A scale is no release to roll back to.
  const [, good] = list.filter(({ status, description }) => status === "complete" && !description.startsWith(SCALE));
  if (!good) throw new UsageError(`${app_name} has no earlier release to go back to: \`hangar releases\` lists them`);
  return String(good.version);
}
