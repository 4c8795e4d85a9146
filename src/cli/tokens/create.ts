import { firstArgument, textOption, UsageError, type Verb } from "../verb.ts";

export const tokensCreate: Verb = {
  words: "tokens create",
  summary: "Create a token: `org` for an organization, `readonly` to read it, or `deploy` for one app",
  arguments: [["<kind>", "org, readonly or deploy"]],
  options: [
    ["--org <slug>", "the organization (default: personal)"],
    ["-a, --app <app>", "of a deploy token: the app"],
    ["--name <name>", "description"],
    ["--expiry <duration>", "lifetime, for example 30d (default: 20 years)"],
  ],
  examples: ["hangar tokens create readonly --org personal --name grafana", "hangar tokens create org --expiry 30d"],
  async run({ client }, input) {
    const kind = firstArgument(input);
    const body = { name: textOption(input, "name"), expiry: textOption(input, "expiry") };
    if (kind === "deploy") {
      const app_name = textOption(input, "app");
      if (app_name === undefined) throw new UsageError("a deploy token is for one app: --app <app>");
      const token = await client.call("POST /v1/apps/:app_name/deploy_token", { params: { app_name }, body: body });
      return { data: token, text: token.token };
    }
    if (kind !== "org" && kind !== "readonly") {
      throw new UsageError(`a token is of kind org, readonly or deploy, not ${kind}`);
    }
    const made = await client.call("POST /v1/orgs/:org_slug/tokens", {
      params: { org_slug: textOption(input, "org") ?? "personal" },
      body: { kind, ...body },
    });
    return { data: made, text: made.token };
  },
};
