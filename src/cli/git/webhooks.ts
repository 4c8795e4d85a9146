/** Deploys on push to GitHub, Gitea or Forgejo: the webhook, its secret, and its deliveries. */
import { systemClock } from "#core/clock.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago, facts } from "../output.ts";
import { firstArgument, type Input, neededApp, textOption, UsageError, type Verb } from "../verb.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app"];
const COMMIT_CHARS = 7;

const connect: Verb = {
  words: "git connect",
  summary: "Deploy pushes to a repository of GitHub, Gitea or Forgejo (webhook)",
  arguments: [["<repository>", "its address: https://github.com/acme/shop.git"]],
  options: [
    APP,
    ["--username <name>", "of a private repository (default: git)"],
    ["--password-stdin", "read its password, a token with read access, from standard input"],
  ],
  examples: ["hangar git connect https://github.com/acme/shop.git --app web"],
  async run({ client, say, stdin }, input) {
    const username = textOption(input, "username");
    const password = input.options["passwordStdin"] === true ? (await stdin()).trim() : undefined;
    if (password === "") throw new UsageError("--password-stdin: standard input has no password");
    const data = await client.call("POST /v1/apps/:app_name/git/webhooks", {
      params: { app_name: neededApp(input) },
      body: {
        repository: firstArgument(input),
        ...(username === undefined ? {} : { username }),
        ...(password === undefined ? {} : { password }),
      },
    });
    say("Add a webhook there with these; the secret is shown only now:");
    const text = facts([
      ["payload URL", data.url],
      ["content type", "application/json"],
      ["secret", data.secret],
      ["events", "push, delete (Gitea: repository events), pull requests"],
    ]);
    return { data, text };
  },
};

const webhooks: Verb = {
  words: "git webhooks",
  summary: "List connected Git repositories of an app",
  options: [APP],
  lists: true,
  examples: ["hangar git webhooks --app web"],
  async run(context, input) {
    const params = { app_name: neededApp(input) };
    const pages = pagesOf(context.client, input, "GET /v1/apps/:app_name/git/webhooks", { params });
    return await listTable(context, input, pages, {
      heads: ["id", "repository", "by", "payload url"],
      row: ({ id, repository, created_by, url }) => [id, repository, created_by, url],
      none: "no webhooks; hangar git connect makes one",
    });
  },
};

/** The named webhook, or the only one. */
async function webhookOf({ client }: Parameters<Verb["run"]>[0], input: Input) {
  const app_name = neededApp(input);
  if (firstArgument(input) !== "") return { app_name, git_webhook_id: firstArgument(input) };
  const { webhooks } = await client.call("GET /v1/apps/:app_name/git/webhooks", { params: { app_name } });
  const [only, ...more] = webhooks;
  if (!only) throw new UsageError(`${app_name} has no Git webhook; hangar git connect makes one`);
  if (more.length > 0)
    throw new UsageError(`${app_name} has ${webhooks.length} Git webhooks: name one of \`hangar git webhooks\``);
  return { app_name, git_webhook_id: only.id };
}

const WEBHOOK: readonly [string, string] = ["[webhook]", "its id (default: the only one of the app)"];

const deliveries: Verb = {
  words: "git deliveries",
  summary: "List received events of a webhook and their results",
  arguments: [WEBHOOK],
  options: [APP],
  lists: true,
  examples: ["hangar git deliveries --app web"],
  async run(context, input) {
    const params = await webhookOf(context, input);
    const route = "GET /v1/apps/:app_name/git/webhooks/:git_webhook_id/deliveries";
    const now = systemClock.now();
    return await listTable(context, input, pagesOf(context.client, input, route, { params }), {
      heads: ["when", "event", "branch", "state", "commit", "result"],
      row: ({ received_at, event, branch, state, git_commit, result }) => [
        ago(received_at, now),
        event,
        branch ?? "",
        state,
        git_commit?.slice(0, COMMIT_CHARS) ?? "",
        result.split("\n").at(-1) ?? "",
      ],
      none: "no event came yet",
    });
  },
};

const disconnect: Verb = {
  words: "git disconnect",
  summary: "Disconnect a Git repository: its pushes are no longer deployed",
  arguments: [WEBHOOK],
  options: [APP],
  examples: ["hangar git disconnect --app web"],
  async run(context, input) {
    const params = await webhookOf(context, input);
    await context.client.call("DELETE /v1/apps/:app_name/git/webhooks/:git_webhook_id", { params });
    const id = params.git_webhook_id;
    return { data: { id, deleted: true }, text: `deleted Git webhook ${id}; delete it there, too` };
  },
};

export const WEBHOOK_VERBS: readonly Verb[] = [connect, webhooks, deliveries, disconnect];
