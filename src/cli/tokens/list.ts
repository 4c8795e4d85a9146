import { table } from "../output.ts";
import { textOption, type Verb } from "../verb.ts";

export const tokensList: Verb = {
  words: "tokens list",
  summary: "List an organization's tokens, revoked ones too",
  options: [["--org <slug>", "the organization (default: personal)"]],
  examples: ["hangar tokens list --org personal"],
  async run({ client }, input) {
    const { tokens } = await client.call("GET /v1/orgs/:org_slug/tokens", {
      params: { org_slug: textOption(input, "org") ?? "personal" },
    });
    const state = (token: (typeof tokens)[number]): string =>
      token.revoked_at ? `revoked ${token.revoked_at}` : token.expires_at ? `until ${token.expires_at}` : "never ends";
    return {
      data: tokens,
      text: table(
        ["id", "kind", "name", "created", "state"],
        tokens.map((token) => [token.id, token.kind, token.name, token.created_at, state(token)]),
      ),
    };
  },
};
