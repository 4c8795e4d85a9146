import { dirname } from "node:path";
import type { MachineConfig } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { type Group, groupsOf, processesOf } from "../app-file/groups.ts";
import { type AppFile, readAppFile } from "../app-file/read.ts";
import type { BuildInput, BuildResult } from "../builds/build.ts";
import { inProject, withCompose } from "../compose/app-file.ts";
import { egressBody } from "../network/egress.ts";
import { type Context, type Input, neededApp, type Result, textOption, UsageError, type Verb } from "../verb.ts";
import { alertsOf } from "./alerts.ts";
import { BUILD_OPTIONS, buildForDeploy, buildInput, builtImage, groupBuilds } from "./build.ts";
import type { Definition } from "./definition.ts";
import { GIT_OPTIONS, type GitState, gitState } from "./git.ts";
import { APP, DRY_RUN, MESSAGE, reported, rollback } from "./history.ts";
import { pinned, referenceText } from "./image.ts";
import { imageDeploy, imageWithoutFile } from "./image-only.ts";
import { CREATED_KEY, RETIRED_KEY } from "./leftovers.ts";
import { differences, planLines, type Running } from "./plan.ts";
import { asPreview, isPreview, openPreview, PREVIEW, reportedPreview } from "./preview.ts";
import { plan, release, strategyOf } from "./release.ts";
import { scale } from "./scale.ts";
import { keepSqlite } from "./sqlite.ts";
import { TIMING_OPTIONS, timingOf } from "./timing.ts";

const FILE: readonly [string, string] = ["-f, --file <path>", "the file (default: hangar.toml, or fly.toml, here)"];
/** Alias used by other tools. */
const CONFIG: readonly [string, string] = ["-c, --config <path>", "the same as --file"];
const IMAGE: readonly [string, string] = ["--image <image>", "the image (default: the file's)"];

interface DeployInput {
  app_name: string;
  file: AppFile;
  definition: Definition;
  /** What is to be built first, for the groups that have it. */
  builds: Map<string, BuildInput>;
  /** Secrets that the app gets before its machines: files of a compose file. */
  secrets: Record<string, string>;
}

function deployInput(context: Context, input: Input): DeployInput {
  const written = readAppFile(textOption(input, "file") ?? textOption(input, "config"), process.cwd());
  const { file, secrets, project } = withCompose(written);
  for (const warning of file.warnings) context.say(`warning: ${warning}`);
  const { primary_region } = file.values as { primary_region?: string };
  const app_name = neededApp(input);
  const { image, builds } = imagesOf(file, input, app_name);
  const deploy = (file.values["deploy"] ?? {}) as Record<string, string | number | undefined>;
  const { release_command, release_command_timeout, wait_timeout, max_unavailable } = deploy;
  return {
    app_name,
    file,
    builds,
    secrets,
    definition: {
      image,
      strategy: strategyOf(textOption(input, "strategy") ?? (deploy["strategy"] as string | undefined)),
      ...(primary_region === undefined ? {} : { region: primary_region }),
      groups: groupsOf(file, image).map((group) => (project ? inProject(group, app_name) : group)),
      ...(typeof release_command === "string" ? { release_command } : {}),
      ...(release_command_timeout === undefined ? {} : { release_command_timeout: String(release_command_timeout) }),
      ...(wait_timeout === undefined ? {} : { wait_timeout: String(wait_timeout) }),
      ...egressOf(file),
      ...alertsOf(file, app_name),
      ...(typeof max_unavailable === "number" ? { max_unavailable } : {}),
    },
  };
}

/** The image of the groups without one of their own, and what is built first, by group. */
function imagesOf(file: AppFile, input: Input, app_name: string): Pick<DeployInput, "builds"> & { image: string } {
  const { image: named, build: section } = file.values as { image?: string; build?: { image?: string } };
  const given = textOption(input, "image") ?? named ?? section?.image;
  const builds = groupBuilds(file, input);
  const processes = processesOf(file);
  const plain = processes.filter(([name, { image }]) => image === undefined && !builds.has(name));
  if (given !== undefined) return { image: given, builds };
  if (plain.length === 0) return { image: processes[0]?.[1].image ?? builtImage(app_name), builds };
  const build = buildInput(file, input);
  if (!build)
    throw new UsageError(
      `${file.path} names no image, and there is no Dockerfile in ${file.dir}: write one, or image = "name", or use --image`,
    );
  for (const [name] of plain) builds.set(name, build);
  return { image: builtImage(app_name), builds };
}

/** `[egress]`: `policy = "all"` or `"none"`, or `allow` with what may be reached. */
function egressOf({ values, path }: AppFile): Pick<Definition, "egress"> {
  const egress = values["egress"] as { policy?: string; allow?: string[] } | undefined;
  if (!egress) return {};
  const { policy = "list", allow = [] } = egress;
  if (policy === "list" && allow.length > 0) return { egress: egressBody(allow) };
  if ((policy === "all" || policy === "none") && allow.length === 0) return { egress: egressBody([policy]) };
  throw new UsageError(`${path}: [egress] has policy = "all", policy = "none", or allow = ["api.example.com:443"]`);
}

const deploy: Verb = {
  words: "deploy",
  summary: "Deploy the app of this folder's app file, or an image; rolled back when it fails",
  options: [
    FILE,
    CONFIG,
    APP,
    IMAGE,
    ["--strategy <name>", "rolling, immediate, canary or bluegreen (default: the file's, else rolling)"],
    ["--org <slug>", "organization of the app, if it is created"],
    ["--port <port>", "the port that the image's server listens on, for a first release without a file"],
    PREVIEW,
    MESSAGE,
    ...GIT_OPTIONS,
    ...BUILD_OPTIONS,
    ...TIMING_OPTIONS,
    DRY_RUN,
  ],
  examples: ["hangar deploy --dry-run", "hangar deploy", "hangar deploy --image hangar/hello --app web --dry-run"],
  async run(context, input) {
    const alone = imageWithoutFile(input, process.cwd());
    if (alone !== undefined) return await (isPreview(input) ? previewImage : deployImage)(context, input, alone);
    const wanted = deployInput(context, input);
    const { app_name, file, builds } = wanted;
    if (input.options["buildOnly"] === true && builds.size === 0)
      throw new UsageError("--build-only: an image is named, so there is nothing to build");
    const git = await gitState(input, dirname(file.path));
    if (!isPreview(input)) return await deployed(context, input, { ...wanted, git });
    const small = { ...wanted, definition: asPreview(wanted.definition), git };
    if (input.options["dryRun"] === true) return await reportedPreview(context, app_name, input, small);
    const preview = await openPreview(context, app_name, input, git);
    try {
      return await deployed(preview.context, input, ofApp(small, preview.app_name));
    } catch (thrown) {
      await preview.failed();
      throw thrown;
    }
  },
};

async function deployImage(context: Context, input: Input, image: string): Promise<Result> {
  const app_name = neededApp(input);
  const strategy = textOption(input, "strategy");
  const { definition, adopt } = await imageDeploy(context, app_name, {
    image,
    port: textOption(input, "port"),
    strategy: strategy === undefined ? undefined : strategyOf(strategy),
  });
  if (input.options["dryRun"] === true) return await reported(context, app_name, definition, { adopt });
  const done = await release(context, app_name, definition, {
    adopt,
    image_checks: true,
    description: "deploy",
    message: textOption(input, "message"),
    timing: timingOf(input),
    new_app: { org_slug: textOption(input, "org") },
  });
  return { data: { app_name, ...done }, text: `${app_name} runs release ${done.version}` };
}

/** A preview without an app file: the app's newest release with this image. */
async function previewImage(context: Context, input: Input, image: string): Promise<Result> {
  const app_name = neededApp(input);
  const { definition } = await imageDeploy(context, app_name, {
    image,
    port: textOption(input, "port"),
    strategy: undefined,
  });
  const git = await gitState(input, process.cwd());
  const small = asPreview(definition);
  if (input.options["dryRun"] === true)
    return await reportedPreview(context, app_name, input, { git, definition: small });
  const preview = await openPreview(context, app_name, input, git);
  try {
    const done = await release(preview.context, preview.app_name, small, {
      image_checks: true,
      description: "deploy",
      message: textOption(input, "message"),
      git,
      timing: timingOf(input),
    });
    return {
      data: { app_name: preview.app_name, ...done },
      text: `${preview.app_name} runs release ${done.version}`,
    };
  } catch (thrown) {
    await preview.failed();
    throw thrown;
  }
}

/** The same input for another app name, which its builds have too. */
const ofApp = (wanted: DeployInput & { git: GitState }, app_name: string): DeployInput & { git: GitState } => {
  const { image } = wanted.definition;
  const named = image === builtImage(wanted.app_name) ? builtImage(app_name) : image;
  return { ...wanted, app_name, definition: { ...wanted.definition, image: named } };
};

async function deployed(
  context: Context,
  input: Input,
  { app_name, definition, builds, secrets, git }: DeployInput & { git: GitState },
): Promise<Result> {
  const org_slug = textOption(input, "org");
  const kept = await keepSqlite(context, app_name, definition);
  if (input.options["dryRun"] === true) return await reported(context, app_name, kept);
  const built =
    builds.size === 0
      ? new Map<BuildInput, BuildResult>()
      : await buildForDeploy(context, app_name, [...builds.values()], org_slug);
  const results: BuildResult[] = [...built.values()];
  if (input.options["buildOnly"] === true)
    return { data: { app_name, ...results[0], builds: results }, text: results.map(referenceOf).join("\n") };
  const done = await release(context, app_name, withBuilt(kept, builds, built), {
    secrets,
    image_checks: true,
    description: "deploy",
    message: textOption(input, "message"),
    git,
    timing: timingOf(input),
    new_app: { org_slug },
  });
  const data = { app_name, ...done, ...(results[0] ? { build: results[0], builds: results } : {}) };
  return { data, text: `${app_name} runs release ${done.version}` };
}

const referenceOf = ({ build }: BuildResult): string => `${build.image}@${build.digest}`;

/** The definition with what was built as the images of its groups. */
function withBuilt(
  definition: Definition,
  builds: ReadonlyMap<string, BuildInput>,
  built: ReadonlyMap<BuildInput, BuildResult>,
): Definition {
  const groups = definition.groups.map((group): Group => {
    const input = builds.get(group.name);
    const result = input && built.get(input);
    return result ? { ...group, config: { ...group.config, image: referenceOf(result) } } : group;
  });
  const [first] = groups;
  const is_built = first && builds.has(first.name);
  return { ...definition, groups, ...(is_built ? { reference: first.config.image } : {}) };
}

const diff: Verb = {
  words: "diff",
  summary: "Show the changes that a deploy would make",
  options: [FILE, CONFIG, APP, IMAGE],
  examples: ["hangar diff"],
  async run(context, input) {
    const { app_name, definition: written } = deployInput(context, input);
    const named = await keepSqlite(context, app_name, written);
    const definition = await pinned(context, app_name, named, { image_checks: true }).catch((thrown: unknown) => {
      // Without the app or image there is no digest to compare.
      if (thrown instanceof ClientError && thrown.http === 404) return named;
      throw thrown;
    });
    const planned = await plan(context, app_name, definition);
    const changes = planned.groups.flatMap(({ group, update }) =>
      update.map((machine) => ({ machine: machine.name, changes: configChanges(machine, group.config) })),
    );
    const lines = changes.flatMap(({ machine, changes: own }) => own.map((change) => `${machine}  ${change}`));
    const others = planLines(planned).filter((line) => !line.startsWith("update"));
    const text = [...lines, ...others].join("\n") || "nothing differs";
    return { data: { app_name, changes, plan: others }, text, exit: lines.length + others.length > 0 ? 1 : 0 };
  },
};

/** Ignores fields that the platform adds. */
function configChanges(machine: Running, after: MachineConfig): string[] {
  const before = { ...machine.config, image: bootedImage(machine) };
  const plain = (whole: MachineConfig): object => {
    const { metadata, mounts: _, image, ...config } = whole;
    const { fly_release_version: __, [CREATED_KEY]: ___, [RETIRED_KEY]: ____, ...own } = metadata ?? {};
    return { image: after.image.includes("@") ? referenceText(image) : image.split("@")[0], ...config, metadata: own };
  };
  return differences(onlyKnown(plain(before), plain(after)), plain(after));
}

/** A machine not created by a deploy may name its image without a digest. */
const bootedImage = ({ config: { image }, image_ref }: Running): string =>
  image.includes("@") ? image : `${image}@${image_ref.digest}`;

/** Fields that the platform fills in. */
const FILLED_IN = ["guest", "restart", "stop_config"];

function onlyKnown(before: object, after: object): object {
  const known = after as Record<string, object | undefined>;
  return Object.fromEntries(
    Object.entries(before).flatMap(([key, value]: [string, object]) => {
      if (!FILLED_IN.includes(key)) return [[key, value]];
      const fields = known[key];
      return fields ? [[key, Object.fromEntries(Object.entries(value).filter(([part]) => part in fields))]] : [];
    }),
  );
}

export const VERBS: readonly Verb[] = [deploy, diff, scale, rollback];
