import type { MachineConfig } from "#client/api.ts";
import { systemClock } from "#core/clock.ts";
import { type Group, groupsOf } from "../app-file/groups.ts";
import { type AppFile, readAppFile } from "../app-file/read.ts";
import { ago, table } from "../output.ts";
import { type Context, firstArgument, type Input, type Result, textOption, UsageError, type Verb } from "../verb.ts";
import { machinesOf } from "./machines.ts";
import { differences, groupName, planLines } from "./plan.ts";
import { type Definition, ensureApp, plan, release, strategyOf, type Wish } from "./release.ts";

const FILE: readonly [string, string] = ["-f, --file <path>", "the file (default: hangar.toml, or fly.toml, here)"];
/** What other tools call it. */
const CONFIG: readonly [string, string] = ["-c, --config <path>", "the same as --file"];
const APP: readonly [string, string] = ["-a, --app <app>", "the app (default: the file's)"];
const IMAGE: readonly [string, string] = ["--image <image>", "the image (default: the file's)"];
const DRY_RUN: readonly [string, string] = ["--dry-run", "tell what would be done, and do nothing"];

interface Asked {
  app_name: string;
  file: AppFile;
  definition: Definition;
}

function asked(context: Context, input: Input): Asked {
  const file = readAppFile(textOption(input, "file") ?? textOption(input, "config"), process.cwd());
  for (const warning of file.warnings) context.say(`warning: ${warning}`);
  const { app, primary_region } = file.values as { app?: string; primary_region?: string };
  const app_name = textOption(input, "app") ?? app;
  if (!app_name) throw new UsageError(`${file.path} names no app; write app = "name", or use --app`);
  const { image: named, build } = file.values as { image?: string; build?: { image?: string } };
  const image = textOption(input, "image") ?? named ?? build?.image;
  if (!image) {
    throw new UsageError(
      `${file.path} names no image; images are built elsewhere: write image = "name", or use --image (hangar images import brings one here)`,
    );
  }
  const deploy = (file.values["deploy"] ?? {}) as Record<string, string | number | undefined>;
  const { release_command, wait_timeout, max_unavailable } = deploy;
  return {
    app_name,
    file,
    definition: {
      image,
      strategy: strategyOf(textOption(input, "strategy") ?? (deploy["strategy"] as string | undefined)),
      ...(primary_region === undefined ? {} : { region: primary_region }),
      groups: groupsOf(file, image),
      ...(typeof release_command === "string" ? { release_command } : {}),
      ...(wait_timeout === undefined ? {} : { wait_timeout: String(wait_timeout) }),
      ...(typeof max_unavailable === "number" ? { max_unavailable } : {}),
    },
  };
}

const deploy: Verb = {
  words: "deploy",
  summary: "Make an app run what its file says; undone when it fails",
  options: [
    FILE,
    CONFIG,
    APP,
    IMAGE,
    ["--strategy <name>", "rolling, immediate, canary or bluegreen (default: the file's, else rolling)"],
    ["--org <slug>", "whose app it is, when it has to be made"],
    DRY_RUN,
  ],
  examples: ["hangar deploy --dry-run", "hangar deploy"],
  async run(context, input) {
    const { app_name, definition } = asked(context, input);
    if (input.options["dryRun"] === true) return await told(context, app_name, definition);
    await ensureApp(context, app_name, textOption(input, "org"));
    const { version, plan: done } = await release(context, app_name, definition, { description: "deploy" });
    return { data: { app_name, version, plan: done }, text: `${app_name} runs release ${version}` };
  },
};

async function told(context: Context, app_name: string, definition: Definition, wish: Wish = {}): Promise<Result> {
  const planned = await plan(context, app_name, definition, wish);
  const text = planLines(planned).join("\n") || "nothing to do";
  return { data: { app_name, definition, plan: planned }, text };
}

const diff: Verb = {
  words: "diff",
  summary: "Show how the machines of an app differ from what its file says",
  options: [FILE, CONFIG, APP, IMAGE],
  examples: ["hangar diff"],
  async run(context, input) {
    const { app_name, definition } = asked(context, input);
    const planned = await plan(context, app_name, definition);
    const changes = planned.groups.flatMap(({ group, update }) =>
      update.map((machine) => ({ machine: machine.name, changes: configChanges(machine.config, group.config) })),
    );
    const lines = changes.flatMap(({ machine, changes: own }) => own.map((change) => `${machine}  ${change}`));
    const others = planLines(planned).filter((line) => !line.startsWith("update"));
    const text = [...lines, ...others].join("\n") || "nothing differs";
    return { data: { app_name, changes, plan: others }, text, exit: lines.length + others.length > 0 ? 1 : 0 };
  },
};

/** What the platform adds by itself is no difference. */
function configChanges(before: MachineConfig, after: MachineConfig): string[] {
  const plain = (whole: MachineConfig): object => {
    const { metadata, mounts: _, ...config } = whole;
    const { fly_release_version: __, ...own } = metadata ?? {};
    return { ...config, metadata: own };
  };
  return differences(onlyAsked(plain(before), plain(after)), plain(after));
}

/** Parts that the platform fills in where the file says nothing, or only some of it. */
const FILLED_IN = ["guest", "restart", "stop_config"];

function onlyAsked(before: object, after: object): object {
  const known = after as Record<string, object | undefined>;
  return Object.fromEntries(
    Object.entries(before).flatMap(([key, value]: [string, object]) => {
      if (!FILLED_IN.includes(key)) return [[key, value]];
      const asked = known[key];
      return asked ? [[key, Object.fromEntries(Object.entries(value).filter(([part]) => part in asked))]] : [];
    }),
  );
}

const releases: Verb = {
  words: "releases",
  summary: "List what was deployed, the newest first",
  options: [APP],
  examples: ["hangar releases --app web"],
  async run({ client }, input) {
    const app_name = needApp(input);
    const { releases: list } = await client.call("GET /v1/apps/:app_name/releases", {
      params: { app_name },
      query: {},
    });
    const now = systemClock.now();
    const rows = list.map((one) => [
      String(one.version),
      one.status,
      one.strategy,
      one.description,
      one.created_by,
      ago(one.created_at, now),
    ]);
    const text = rows.length > 0 ? table(["version", "status", "strategy", "what", "by", "when"], rows) : "no releases";
    return { data: list, text };
  },
};

const rollback: Verb = {
  words: "rollback",
  summary: "Deploy an earlier release again",
  arguments: [["[version]", "which (default: the complete one before the one that runs)"]],
  options: [APP, DRY_RUN],
  examples: ["hangar rollback --app web"],
  async run(context, input) {
    const app_name = needApp(input);
    const version = input.args[0] ?? (await lastGood(context, app_name));
    if (!/^[1-9]\d*$/.test(version)) throw new UsageError(`${version} is not a number of \`hangar releases\``);
    const { definition } = await context.client.call("GET /v1/apps/:app_name/releases/:version", {
      params: { app_name, version },
    });
    if (input.options["dryRun"] === true) return await told(context, app_name, definition as Definition);
    const done = await release(context, app_name, definition as Definition, {
      description: `rollback to release ${version}`,
    });
    return { data: done, text: `${app_name} runs release ${done.version}, the same as ${version}` };
  },
};

async function lastGood({ client }: Context, app_name: string): Promise<string> {
  const { releases: list } = await client.call("GET /v1/apps/:app_name/releases", { params: { app_name }, query: {} });
  const [, good] = list.filter(({ status }) => status === "complete");
  if (!good) throw new UsageError(`${app_name} has no earlier release that is complete`);
  return String(good.version);
}

const scale: Verb = {
  words: "scale",
  summary: "Change how many machines the process groups of an app have",
  arguments: [["<counts...>", "GROUP=N, or N for the only group"]],
  options: [APP, DRY_RUN],
  examples: ["hangar scale 2 --app web --dry-run", "hangar scale 2 --app web"],
  async run(context, input) {
    const app_name = needApp(input);
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
    const description = `scale ${Object.entries(wanted)
      .map(([name, n]) => `${name}=${n}`)
      .join(" ")}`;
    const wish = { counts: wanted, keep: true };
    if (input.options["dryRun"] === true) return await told(context, app_name, definition as Definition, wish);
    const done = await release(context, app_name, definition as Definition, { description, ...wish });
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

function needApp(input: Input): string {
  return textOption(input, "app") ?? fileApp(input);
}

/** In a folder with an app's file, that app is meant. */
function fileApp(input: Input): string {
  const { app } = readAppFile(textOption(input, "file") ?? textOption(input, "config"), process.cwd()).values as {
    app?: string;
  };
  if (!app) throw new UsageError("say which app: --app <name>");
  return app;
}

export const VERBS: readonly Verb[] = [deploy, diff, scale, releases, rollback];
