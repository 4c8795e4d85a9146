import { systemClock } from "#core/clock.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago, facts } from "../output.ts";
import { type Context, filterApp, firstArgument, type Input, neededApp, textOption, type Verb } from "../verb.ts";
import { type Build, followBuild } from "./build.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app"];
const BUILD: readonly [string, string] = ["<build>", "the id of the build"];

const paramsOf = (input: Input) => ({ app_name: neededApp(input), build_id: firstArgument(input) });

const buildText = (build: Build): string =>
  facts([
    ["id", build.id],
    ["state", build.state],
    ["image", build.image],
    ["digest", build.digest ?? "none"],
    ["dockerfile", build.dockerfile],
    ["target", build.target ?? "the last stage"],
    ["step", build.step ?? "none yet"],
    ["files", String(build.files)],
    ["created", `${build.created_at} by ${build.created_by}`],
    ["started", build.started_at ?? "not yet"],
    ["ended", build.ended_at ?? "not yet"],
    ...(build.error === null ? [] : [["error", build.error] as const]),
  ]);

type Listed = Build & { app_name: string };

/** An app's builds, or an organization's. */
async function* buildPages({ client }: Context, input: Input): AsyncGenerator<Listed[]> {
  const app_name = filterApp(input);
  if (app_name === undefined) {
    const params = { org_slug: textOption(input, "org") ?? "personal" };
    yield* pagesOf(client, input, "GET /v1/orgs/:org_slug/builds", { params });
    return;
  }
  for await (const page of pagesOf(client, input, "GET /v1/apps/:app_name/builds", { params: { app_name } }))
    yield page.map((build) => ({ ...build, app_name }));
}

const list: Verb = {
  words: "builds list",
  summary: "List the builds of an app, or without --app of an organization, newest first",
  options: [APP, ["--org <org>", "without an app: the organization (default: personal)"]],
  lists: true,
  examples: ["hangar builds list --app web", "hangar builds list --org personal"],
  async run(context, input) {
    const now = systemClock.now();
    return await listTable(context, input, buildPages(context, input), {
      heads: ["build", "app", "state", "step", "digest", "by", "when", "error"],
      row: ({ id, app_name, state, step, digest, created_by, created_at, error }) => [
        id,
        app_name,
        state,
        state === "complete" ? "" : (step ?? ""),
        digest?.slice("sha256:".length, "sha256:".length + 12) ?? "",
        created_by,
        ago(created_at, now),
        error ?? "",
      ],
      none: "no builds yet; `hangar deploy` in a folder with a Dockerfile starts one",
    });
  },
};

const show: Verb = {
  words: "builds show",
  summary: "Show a build",
  arguments: [BUILD],
  options: [APP],
  examples: [],
  async run({ client }, input) {
    const build = await client.call("GET /v1/apps/:app_name/builds/:build_id", { params: paramsOf(input) });
    return { data: build, text: buildText(build) };
  },
};

const logs: Verb = {
  words: "builds logs",
  summary: "Print the output of a build; --follow streams it",
  arguments: [BUILD],
  options: [APP, ["-f, --follow", "follow until the build ends"]],
  examples: [],
  async run(context, input) {
    const params = paramsOf(input);
    if (input.options["follow"] === true) {
      const build = await followBuild(context, params.app_name, params.build_id);
      return { data: build, text: `build ${build.id} is complete` };
    }
    const { log } = await context.client.call("GET /v1/apps/:app_name/builds/:build_id/logs", { params });
    return { data: { log }, text: log.trimEnd() };
  },
};

const cancel: Verb = {
  words: "builds cancel",
  summary: "Cancel a build",
  arguments: [BUILD],
  options: [APP],
  examples: [],
  async run({ client }, input) {
    const build = await client.call("POST /v1/apps/:app_name/builds/:build_id/cancel", { params: paramsOf(input) });
    return { data: build, text: `build ${build.id} is ${build.state}` };
  },
};

export const VERBS: readonly Verb[] = [list, show, logs, cancel];
