/** Builds the image of a deploy from the folder's Dockerfile. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ClientError } from "#client/client.ts";
import { type Process, processesOf } from "../app-file/groups.ts";
import type { AppFile } from "../app-file/read.ts";
import { type BuildInput, type BuildResult, buildImage } from "../builds/build.ts";
import { type Context, type Input, listOption, textOption, UsageError } from "../verb.ts";

export const BUILD_OPTIONS: readonly (readonly [string, string])[] = [
  ["--build-only", "build the image and stop"],
  ["--no-cache", "run every step of the build, also those that did not change"],
  ["--build-arg <name=value...>", "set a build argument (ARG); may be repeated"],
  ["--build-secret <id=file...>", "give a file to RUN --mount=type=secret,id=…; may be repeated"],
  ["--build-target <stage>", "build this stage (default: the file's, else the last)"],
];

/** `[build]`, or that of one process group. */
interface BuildSection {
  context?: string;
  dockerfile?: string;
  target?: string;
  ignorefile?: string;
  platform?: string;
  args?: Record<string, string | number | boolean>;
}

/** The tag of the newest build of an app. */
export const builtImage = (app_name: string): string => `builds/${app_name}:latest`;

/** What is to be built; undefined in a folder without a Dockerfile. */
export function buildInput(file: AppFile, input: Input): BuildInput | undefined {
  const section = (file.values["build"] ?? {}) as BuildSection;
  if (section.dockerfile === undefined && !existsSync(join(file.dir, "Dockerfile"))) return undefined;
  return sectionInput(file, { section, name: "[build]" }, input);
}

/** The build of a section, whose paths are relative to the file; its Dockerfile is relative to the context. */
function sectionInput(
  { dir: base, path }: AppFile,
  { section, name }: { section: BuildSection; name: string },
  input: Input,
): BuildInput {
  const dir = resolve(base, section.context ?? ".");
  const dockerfile = section.dockerfile?.replace(/^\.\//, "") ?? "Dockerfile";
  if (!existsSync(join(dir, dockerfile)))
    throw new UsageError(`${path}: ${name} names ${dockerfile}, which does not exist in ${dir}`);
  const args = Object.entries(section.args ?? {}).map(([name, value]): [string, string] => [name, String(value)]);
  return {
    dir,
    dockerfile,
    ignorefile: section.ignorefile?.replace(/^\.\//, ""),
    target: textOption(input, "buildTarget") ?? section.target,
    platform: section.platform,
    args: { ...Object.fromEntries(args), ...pairs(input, "buildArg", "--build-arg") },
    secrets: secretsOf(input),
    no_cache: input.options["cache"] === false || input.options["noCache"] === true,
  };
}

/** Builds of process groups that have one of their own, by group. Two groups of one build share its input. */
export function groupBuilds(file: AppFile, input: Input): Map<string, BuildInput> {
  const known = new Map<string, BuildInput>();
  const own = processesOf(file).flatMap(([name, { image, build }]): [string, Process["build"]][] =>
    build && image === undefined ? [[name, build]] : [],
  );
  return new Map(
    own.map(([name, section]) => {
      const made = sectionInput(file, { section: section as BuildSection, name: `processes.${name}.build` }, input);
      const key = JSON.stringify(made);
      const shared = known.get(key) ?? made;
      known.set(key, shared);
      return [name, shared];
    }),
  );
}

function pairs(input: Input, option: string, flag: string): Record<string, string> {
  const found = listOption(input, option).map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at < 1) throw new UsageError(`${flag} is name=value, not ${text}`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return Object.fromEntries(found);
}

function secretsOf(input: Input): Record<string, string> {
  const named = Object.entries(pairs(input, "buildSecret", "--build-secret"));
  return Object.fromEntries(
    named.map(([id, file]) => {
      if (!existsSync(file)) throw new UsageError(`--build-secret ${id}: there is no file ${file}`);
      return [id, readFileSync(file, "utf8")];
    }),
  );
}

/** Runs the builds one after the other; an app that was created for them is deleted when a build fails. */
export async function buildForDeploy(
  context: Context,
  app_name: string,
  wanted: readonly BuildInput[],
  org_slug: string | undefined,
): Promise<Map<BuildInput, BuildResult>> {
  const { client } = context;
  const params = { app_name };
  const made = await client.call("GET /v1/apps/:app_name", { params }).then(
    () => false,
    async (thrown: unknown) => {
      if (!(thrown instanceof ClientError) || thrown.http !== 404) throw thrown;
      await client.call("POST /v1/apps", { body: { app_name, ...(org_slug ? { org_slug } : {}) } });
      return true;
    },
  );
  try {
    const built = new Map<BuildInput, BuildResult>();
    for (const one of new Set(wanted)) built.set(one, await buildImage(context, app_name, one));
    return built;
  } catch (thrown) {
    if (made) await client.call("DELETE /v1/apps/:app_name", { params, query: { force: true } });
    throw thrown;
  }
}
