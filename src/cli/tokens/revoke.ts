import { firstArgument, textOption, type Verb } from "../verb.ts";

export const tokensRevoke: Verb = {
  words: "tokens revoke",
  summary: "Revoke a token and all tokens derived from it",
  arguments: [["<id>", "the token's id, from `hangar tokens list`"]],
  options: [["--org <slug>", "the organization (default: personal)"]],
  examples: ["hangar tokens revoke $TOKEN_ID"],
  async run({ client }, input) {
    const params = { org_slug: textOption(input, "org") ?? "personal", token_id: firstArgument(input) };
    const token = await client.call("DELETE /v1/orgs/:org_slug/tokens/:token_id", { params });
    return { data: token, text: `revoked ${token.id}` };
  },
};
