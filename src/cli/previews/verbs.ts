/** Preview apps: branches that are deployed as separate apps. */
import { systemClock } from "#core/clock.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago, facts } from "../output.ts";
import {
  type Context,
  firstArgument,
  type Input,
  listOption,
  neededApp,
  numberOption,
  UsageError,
  type Verb,
} from "../verb.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app"];
const NAME: readonly [string, string] = ["<preview>", "the name of its app, or its branch"];
const COMMIT_CHARS = 7;

const list: Verb = {
  words: "previews list",
  summary: "List the preview apps of an app's branches",
  is_default: true,
  options: [APP],
  lists: true,
  examples: ["hangar previews --app web"],
  async run(context, input) {
    const params = { app_name: neededApp(input) };
    const pages = pagesOf(context.client, input, "GET /v1/apps/:app_name/previews", { params });
    const now = systemClock.now();
    return await listTable(context, input, pages, {
      heads: ["branch", "app", "state", "commit", "pushed", "deleted", "url"],
      row: ({ branch, app_name, state, git_commit, pushed_at, expires_at, urls }) => [
        branch,
        app_name,
        state,
        git_commit?.slice(0, COMMIT_CHARS) ?? "",
        ago(pushed_at, now),
        expires_at.slice(0, "2026-01-01".length),
        urls[0] ?? "",
      ],
      none: "no previews",
    });
  },
};

/** Finds a preview by its name or its branch. */
async function find({ client }: Context, input: Input) {
  const [app_name, wanted] = [neededApp(input), firstArgument(input)];
  for await (const preview of client.list("GET /v1/apps/:app_name/previews", { params: { app_name } }))
    if (preview.app_name === wanted || preview.branch === wanted) return { app_name, preview };
  throw new UsageError(`${app_name} has no preview ${wanted}; hangar previews --app ${app_name} lists them`);
}

const show: Verb = {
  words: "previews show",
  summary: "Show a preview: branch, commit, address, secrets, and when it is deleted",
  arguments: [NAME],
  options: [APP],
  examples: ["hangar previews show feature/x --app web"],
  async run(context, input) {
    const { app_name, preview } = await find(context, input);
    const data = await context.client.call("GET /v1/apps/:app_name/previews/:preview_name", {
      params: { app_name, preview_name: preview.app_name },
    });
    const text = facts([
      ["app", data.app_name],
      ["branch", data.branch],
      ["state", data.state],
      ["commit", data.git_commit ?? "none"],
      ["address", data.urls.join(" ") || "none"],
      ["secrets", data.secrets.join(" ") || "none"],
      ["by", data.created_by],
      ["pushed", data.pushed_at],
      ["deleted", `${data.expires_at}, unless it is pushed to before`],
    ]);
    return { data, text };
  },
};

const remove: Verb = {
  words: "previews delete",
  summary: "Delete a preview with its machines, volumes, images and secrets; its branch stays",
  arguments: [NAME],
  options: [APP],
  examples: ["hangar previews delete feature/x --app web"],
  async run(context, input) {
    const { app_name, preview } = await find(context, input);
    await context.client.call("DELETE /v1/apps/:app_name/previews/:preview_name", {
      params: { app_name, preview_name: preview.app_name },
    });
    return { data: { app_name: preview.app_name, deleted: true }, text: `deleted ${preview.app_name}` };
  },
};

const settings: Verb = {
  words: "previews settings",
  summary: "Show or change the settings of preview apps",
  arguments: [["[on|off]", "whether pushes to other branches create previews (default: unchanged)"]],
  options: [
    APP,
    ["--days <days>", "days without a push until a preview is deleted"],
    ["--most <count>", "maximum number of previews"],
    ["--secret <name...>", "a secret to copy to previews; may be repeated; replaces the earlier list"],
    ["--no-secrets", "previews get no secret"],
  ],
  examples: ["hangar previews settings on --app web", "hangar previews settings --days 3 --most 10 --app web"],
  async run({ client }, input) {
    const params = { app_name: neededApp(input) };
    const body = changeOf(input);
    const data = await (Object.keys(body).length === 0
      ? client.call("GET /v1/apps/:app_name/previews/settings", { params })
      : client.call("PUT /v1/apps/:app_name/previews/settings", { params, body }));
    const text = facts([
      ["previews", data.enabled ? "on" : "off"],
      ["deleted after", `${data.days} days without a push`],
      ["at most", String(data.most)],
      ["secrets", data.secrets.join(" ") || "none"],
    ]);
    return { data, text };
  },
};

function changeOf(input: Input) {
  const value = input.args[0];
  if (value !== undefined && value !== "on" && value !== "off")
    throw new UsageError(`previews are on or off, not ${value}`);
  const [days, most, secrets] = [numberOption(input, "days"), numberOption(input, "most"), listOption(input, "secret")];
  const none = input.options["secrets"] === false;
  return {
    ...(value === undefined ? {} : { enabled: value === "on" }),
    ...(days === undefined ? {} : { days }),
    ...(most === undefined ? {} : { most }),
    ...(secrets.length > 0 || none ? { secrets: none ? [] : [...secrets] } : {}),
  };
}

export const VERBS: readonly Verb[] = [list, show, remove, settings];
