import { firstArgument, textOption, UsageError, type Verb } from "../verb.ts";

export const tokensCreate: Verb = {
  words: "tokens create",
  summary: "Create a token for one organization: `org` for everything in it, `readonly` to look",
  arguments: [["<kind>", "org or readonly"]],
  options: [
    ["--org <slug>", "the organization (default: personal)"],
    ["--name <name>", "what it is for"],
    ["--expiry <duration>", "how long it lives, for example 30d (default: 20 years)"],
  ],
  examples: ["hangar tokens create readonly --org personal --name grafana", "hangar tokens create org --expiry 30d"],
  async run({ client }, input) {
    const kind = firstArgument(input);
    if (kind !== "org" && kind !== "readonly") throw new UsageError(`a token is of kind org or readonly, not ${kind}`);
    const made = await client.call("POST /v1/orgs/:org_slug/tokens", {
      params: { org_slug: textOption(input, "org") ?? "personal" },
      body: { kind, name: textOption(input, "name"), expiry: textOption(input, "expiry") },
    });
    return { data: made, text: made.token };
  },
};
