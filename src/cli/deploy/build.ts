/** Builds the image of a deploy from the folder's Dockerfile. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ClientError } from "#client/client.ts";
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

interface BuildSection {
  dockerfile?: string;
  target?: string;
  ignorefile?: string;
  platform?: string;
  args?: Record<string, string | number | boolean>;
}

/** The name that the platform gives to the newest build of an app. */
export const builtImage = (app_name: string): string => `builds/${app_name}:latest`;

/** What is to be built; undefined in a folder without a Dockerfile. */
export function buildInput({ values, dir, path }: AppFile, input: Input): BuildInput | undefined {
  const section = (values["build"] ?? {}) as BuildSection;
  const dockerfile = section.dockerfile?.replace(/^\.\//, "") ?? "Dockerfile";
  if (!existsSync(join(dir, dockerfile))) {
    if (section.dockerfile === undefined) return undefined;
    throw new UsageError(`${path}: [build] dockerfile names ${dockerfile}, which does not exist in ${dir}`);
  }
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

/** Builds; an app that was only made for this goes again when the build fails. */
export async function buildForDeploy(
  context: Context,
  app_name: string,
  wanted: BuildInput,
  org_slug: string | undefined,
): Promise<BuildResult> {
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
    return await buildImage(context, app_name, wanted);
  } catch (thrown) {
    if (made) await client.call("DELETE /v1/apps/:app_name", { params, query: { force: true } });
    throw thrown;
  }
}
