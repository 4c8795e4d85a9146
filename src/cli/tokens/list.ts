import type { ListItem } from "#client/client.ts";
import { listTable, pagesOf } from "../lists.ts";
import { textOption, type Verb } from "../verb.ts";

const ROUTE = "GET /v1/orgs/:org_slug/tokens";

const stateOf = ({ revoked_at, expires_at }: ListItem<typeof ROUTE>): string =>
  revoked_at ? `revoked ${revoked_at}` : expires_at ? `until ${expires_at}` : "never ends";

export const tokensList: Verb = {
  words: "tokens list",
  summary: "List an organization's tokens, revoked ones too",
  options: [["--org <slug>", "the organization (default: personal)"]],
  lists: true,
  examples: ["hangar tokens list --org personal"],
  async run(context, input) {
    const params = { org_slug: textOption(input, "org") ?? "personal" };
    return await listTable(context, input, pagesOf(context.client, input, ROUTE, { params }), {
      heads: ["id", "kind", "name", "created", "state"],
      row: (token) => [token.id, token.kind, token.name, token.created_at, stateOf(token)],
    });
  },
};
