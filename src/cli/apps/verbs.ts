import { systemClock } from "#core/clock.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago, facts } from "../output.ts";
import { firstArgument, textOption, type Verb } from "../verb.ts";

const appsList: Verb = {
  words: "apps list",
  summary: "List an organization's apps",
  options: [["--org <slug>", "the organization (default: the token's own, or personal)"]],
  lists: true,
  examples: ["hangar apps list", "hangar apps list --limit 20"],
  async run(context, input) {
    const pages = pagesOf(context.client, input, "GET /v1/apps", { query: { org_slug: textOption(input, "org") } });
    return await listTable(context, input, pages, {
      heads: ["name", "org", "status", "machines", "created"],
      row: (app) => [
        app.name,
        app.organization.slug,
        app.status,
        String(app.machine_count),
        ago(app.created_at, systemClock.now()),
      ],
      none: "no apps yet; `hangar apps create <name>` makes one",
    });
  },
};

const appsCreate: Verb = {
  words: "apps create",
  summary: "Create an app",
  arguments: [["<name>", "1 to 63 lower-case letters, digits and dashes"]],
  options: [
    ["--org <slug>", "the organization (default: the token's own, or personal)"],
    ["--network <name>", "its private network (default: default)"],
  ],
  examples: ["hangar apps create web"],
  async run({ client }, input) {
    const body = {
      app_name: firstArgument(input),
      org_slug: textOption(input, "org"),
      network: textOption(input, "network"),
    };
    const app = await client.call("POST /v1/apps", { body });
    return { data: app, text: `created ${app.name} in ${app.organization.slug}` };
  },
};

const appsShow: Verb = {
  words: "apps show",
  summary: "Show an app",
  arguments: [["<app>", "the app"]],
  completes: "apps",
  examples: ["hangar apps show web"],
  async run({ client }, input) {
    const app = await client.call("GET /v1/apps/:app_name", { params: { app_name: firstArgument(input) } });
    const created = new Date(app.created_at).toISOString();
    return {
      data: app,
      text: facts([
        ["name", app.name],
        ["id", app.id],
        ["org", app.organization.slug],
        ["status", app.status],
        ["network", app.network],
        ["machines", String(app.machine_count)],
        ["volumes", String(app.volume_count)],
        ["created", created],
      ]),
    };
  },
};

const appsDelete: Verb = {
  words: "apps delete",
  summary: "Delete an app and its secrets",
  arguments: [["<app>", "the app"]],
  options: [["--force", "destroy its machines too"]],
  completes: "apps",
  examples: ["hangar apps delete web --force"],
  async run({ client }, input) {
    const name = firstArgument(input);
    await client.call("DELETE /v1/apps/:app_name", {
      params: { app_name: name },
      query: { force: input.options["force"] === true ? true : undefined },
    });
    return { data: { name, deleted: true }, text: `deleted ${name}` };
  },
};

export const VERBS: readonly Verb[] = [appsList, appsCreate, appsShow, appsDelete];
