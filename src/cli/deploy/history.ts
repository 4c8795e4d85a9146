/** Deploys an earlier release again, or changes the number of machines of the newest. */
import type { Group } from "../app-file/groups.ts";
import { type Context, firstArgument, neededApp, type Result, textOption, UsageError, type Verb } from "../verb.ts";
import type { Definition } from "./definition.ts";
import { imageText } from "./image.ts";
import { machinesOf } from "./machines.ts";
import { groupName, planLines } from "./plan.ts";
import { plan, release, type ScaleOptions } from "./release.ts";
import { TIMING_OPTIONS, timingOf } from "./timing.ts";

export const APP: readonly [string, string] = ["-a, --app <app>", "the app"];
export const MESSAGE: readonly [string, string] = ["-m, --message <text>", "why, for people who read the releases"];
export const DRY_RUN: readonly [string, string] = ["--dry-run", "print what would be done, and change nothing"];

/** Prefix of releases that only changed the number of machines. */
const SCALE = "scale ";

/** The output of a dry run. */
export async function told(
  context: Context,
  app_name: string,
  definition: Definition,
  options: ScaleOptions = {},
): Promise<Result> {
  const planned = await plan(context, app_name, definition, options);
  const text = planLines(planned).join("\n") || "nothing to do";
  return { data: { app_name, definition, plan: planned }, text };
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
    if (input.options["dryRun"] === true) return await told(context, app_name, definition as Definition);
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

export const scale: Verb = {
  words: "scale",
  summary: "Set the number of machines per process group",
  arguments: [["<counts...>", "GROUP=N, or N for the only group"]],
  options: [APP, ...TIMING_OPTIONS, DRY_RUN],
  examples: ["hangar scale 2 --app web --dry-run", "hangar scale 2 --app web"],
  async run(context, input) {
    const app_name = neededApp(input);
    const { releases: list } = await context.client.call("GET /v1/apps/:app_name/releases", {
      params: { app_name },
      query: {},
    });
    const newest = list.find(({ status }) => status === "complete");
    if (!newest) throw new UsageError(`${app_name} was never deployed; hangar deploy does`);
    const { definition } = await context.client.call("GET /v1/apps/:app_name/releases/:version", {
      params: { app_name, version: String(newest.version) },
    });
    const wanted = countsOf([firstArgument(input), ...input.rest].filter(Boolean), (definition as Definition).groups);
    const description = `${SCALE}${Object.entries(wanted)
      .map(([name, n]) => `${name}=${n}`)
      .join(" ")}`;
    const options = { counts: wanted, keep: true };
    if (input.options["dryRun"] === true) return await told(context, app_name, definition as Definition, options);
    const timing = timingOf(input);
    const done = await release(context, app_name, definition as Definition, { description, timing, ...options });
    const there = await machinesOf({ context, app_name });
    const counts = Map.groupBy(there, (machine) => groupName(machine) ?? "(none)");
    const text = [...counts].map(([name, machines]) => `${name}: ${machines.length}`).join("\n");
    return {
      data: { version: done.version, groups: Object.fromEntries([...counts].map(([k, v]) => [k, v.length])) },
      text,
    };
  },
};

function countsOf(words: readonly string[], groups: readonly Group[]): Record<string, number> {
  const names = groups.map(({ name }) => name);
  return Object.fromEntries(
    words.map((word): [string, number] => {
      const [, name = names[0] ?? "", count = ""] = /^(?:([\w-]+)=)?(\d{1,4})$/.exec(word) ?? [];
      if (count === "") throw new UsageError(`${word} is not a number of machines such as 2 or worker=3`);
      if (!names.includes(name))
        throw new UsageError(`there is no process group ${name}; there is ${names.join(", ")}`);
      return [name, Number(count)];
    }),
  );
}
