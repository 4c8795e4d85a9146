/** Releases of an app: image, user, message, commit and result. */
import type { Client } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import type { Definition } from "../deploy/definition.ts";
import { imageText, shortDigest } from "../deploy/image.ts";
import { differences } from "../deploy/plan.ts";
import { ago, facts, table } from "../output.ts";
import { neededApp, UsageError, type Verb } from "../verb.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app"];
const COMMIT_CHARS = 7;

type Release = Awaited<ReturnType<typeof readRelease>>;

const list: Verb = {
  words: "releases list",
  summary: "List releases, newest first",
  is_default: true,
  options: [APP],
  examples: ["hangar releases --app web"],
  async run({ client }, input) {
    const { releases } = await client.call("GET /v1/apps/:app_name/releases", {
      params: { app_name: neededApp(input) },
      query: {},
    });
    const now = systemClock.now();
    const rows = releases.map((one) => [
      String(one.version),
      one.status,
      one.image ?? "",
      one.image_digest ? shortDigest(one.image_digest) : "",
      one.strategy,
      [one.description, one.message].filter((text) => text !== "").join(": "),
      one.git_commit ? commitText(one.git_commit) : "",
      one.created_by,
      one.duration_ms === null ? "" : seconds(one.duration_ms),
      ago(one.created_at, now),
    ]);
    const heads = ["version", "status", "image", "digest", "strategy", "what", "commit", "by", "took", "when"];
    return { data: releases, text: rows.length > 0 ? table(heads, rows) : "no releases" };
  },
};

const show: Verb = {
  words: "releases show",
  summary: "Show a release: image, commit, result and config",
  arguments: [["[version]", "release number (default: the newest)"]],
  options: [APP],
  examples: ["hangar releases show --app web"],
  async run({ client }, input) {
    const release = await readRelease(client, neededApp(input), input.args[0]);
    const { definition } = release;
    const rows = definition.groups.map(({ name, config }) => [
      name,
      config.init?.cmd?.join(" ") ?? config.init?.exec?.join(" ") ?? "the image's command",
    ]);
    return { data: release, text: `${facts(factsOf(release))}\n\n${table(["group", "command"], rows)}` };
  },
};

const diff: Verb = {
  words: "releases diff",
  summary: "Show what differs between two releases",
  arguments: [
    ["<before>", "release number"],
    ["[after]", "release number (default: the newest)"],
  ],
  options: [APP],
  examples: ["hangar releases diff 1 --app web"],
  async run({ client }, input) {
    const app_name = neededApp(input);
    const before = await readRelease(client, app_name, input.args[0]);
    const after = await readRelease(client, app_name, input.args[1]);
    const changes = differences(comparable(before), comparable(after));
    const data = { before: before.version, after: after.version, changes };
    return { data, text: changes.join("\n") || `releases ${before.version} and ${after.version} run the same` };
  },
};

export const VERBS: readonly Verb[] = [list, show, diff];

async function readRelease(client: Client, app_name: string, requested: string | undefined) {
  const version = requested ?? (await newest(client, app_name));
  if (!/^[1-9]\d*$/.test(version)) throw new UsageError(`${version} is not a number of \`hangar releases\``);
  const release = await client.call("GET /v1/apps/:app_name/releases/:version", { params: { app_name, version } });
  return { ...release, definition: release.definition as Definition };
}

async function newest(client: Client, app_name: string): Promise<string> {
  const { releases } = await client.call("GET /v1/apps/:app_name/releases", {
    params: { app_name },
    query: { limit: 1 },
  });
  const [release] = releases;
  if (!release) throw new UsageError(`${app_name} was never deployed: run hangar deploy`);
  return String(release.version);
}

function factsOf(release: Release): [string, string][] {
  const { definition, git_commit, git_branch, duration_ms, image_digest } = release;
  const commit = git_commit && [commitText(git_commit), git_branch && `on ${git_branch}`].filter(Boolean).join(" ");
  const lines: [string, string | null | undefined][] = [
    ["release", String(release.version)],
    ["status", release.status],
    ["failure", release.failure],
    ["image", imageText({ image: definition.image, ...(image_digest === null ? {} : { digest: image_digest }) })],
    ["digest", image_digest],
    ["what", release.description],
    ["message", release.message],
    ["commit", commit],
    ["strategy", release.strategy],
    ["release command", definition.release_command],
    ["by", release.created_by],
    ["created", release.created_at],
    ["took", duration_ms === null ? undefined : seconds(duration_ms)],
  ];
  return lines.flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : []));
}

/** The definition with groups by name, so that a new group is one difference and does not shift the others. */
function comparable({ definition }: Release): object {
  const { groups, reference: _, ...rest } = definition;
  return { ...rest, groups: Object.fromEntries(groups.map(({ name, ...group }) => [name, group])) };
}

const commitText = (commit: string): string => commit.replace(/^([0-9a-f]+)/, (hex) => hex.slice(0, COMMIT_CHARS));
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
