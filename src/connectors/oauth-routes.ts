import { orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { html, page } from "#http/pages.ts";
import { type Row, route } from "#http/route.ts";
import type { OAuthFlow } from "./oauth.ts";
import { PROVIDERS, type ProviderSetting } from "./providers.ts";
import { connectionResponse, policyOf } from "./responses.ts";
import { ownerOf } from "./routes.ts";
import * as schema from "./schema.ts";
import { bad } from "./service.ts";

interface Parts {
  oauth: OAuthFlow;
  settings: Readonly<Record<string, ProviderSetting>>;
  sprites_base_url(): string;
}

export function oauthRoutes({ oauth, settings, sprites_base_url }: Parts): Row[] {
  const usable = (name: string, method: string): boolean =>
    method === "oauth" ? oauth.offers(name) : method !== "provisioned" || settings[name]?.api_key !== undefined;
  return [
    route("GET /v1/oauth/providers", {
      summary: "The providers, and how each can be connected on this platform",
      part: "connectors",
      access: "any",
      pages: inPages("providers", ["number"]),
      response: { status: 200, schema: schema.ProviderList },
      async handle({ page }) {
        const all = Object.entries(PROVIDERS).map(([provider, about], place) => ({ provider, place, ...about }));
        return {
          providers: page
            .of(all, ({ place }) => [place])
            .map(({ provider, title, category, made_by, oauth: flow }) => ({
              provider,
              title,
              category,
              connected_by: made_by.filter((method) => usable(provider, method)),
              default_scopes: [...(flow?.scopes ?? [])],
            })),
        };
      },
    }),
    route("GET /v1/oauth/:provider/authorize", {
      summary: "Begin an OAuth authorization: returns the URL to open",
      part: "connectors",
      // It leads to a new connector and stores state until then.
      access: "create org",
      credential: true,
      query: schema.AuthorizeQuery,
      response: { status: 200, schema: schema.Authorization },
      errors: ["limit_reached"],
      async handle({ params, query, ids, ...call }) {
        const { scopes, add_scopes, state, redirect_uri } = query;
        if (redirect_uri !== undefined && !URL.canParse(redirect_uri)) bad("query.redirect_uri", "is not an address");
        const input = {
          ...(scopes === undefined ? {} : { scopes }),
          ...(add_scopes === undefined ? {} : { add_scopes }),
          ...(state === undefined || state === "" ? {} : { state }),
          ...(redirect_uri === undefined ? {} : { redirect_uri }),
        };
        return await oauth.begin(orgOf(call).id, params.provider, input, ids);
      },
    }),
    route("GET /v1/oauth/:provider/callback", {
      summary: "OAuth redirect target: shows how to finish",
      part: "connectors",
      access: "open",
      query: schema.CallbackQuery,
      response: { status: 200, type: "text/html" },
      handle: async ({ params, query }) => landingPage(params.provider, query),
    }),
    route("POST /v1/oauth/:provider/callback", {
      summary: "Finish an OAuth authorization: creates the connector",
      part: "connectors",
      access: "create org",
      credential: true,
      body: schema.Finish,
      response: { status: 201, schema: schema.One },
      errors: ["limit_reached", "upstream_failed"],
      async handle({ params, body, ids, ...call }) {
        const { code, state, access_policy } = body;
        const input = { code, state, ...(access_policy ? { access_policy: policyOf(access_policy) } : {}) };
        const connection = await oauth.finish(ownerOf(call), params.provider, input, ids);
        return { connection: connectionResponse(connection, sprites_base_url()) };
      },
    }),
  ];
}

/** Only the holder of a token of the organization can finish: a URL proves nothing. */
function landingPage(
  provider: string,
  query: { code?: string; state?: string; error?: string; error_description?: string },
): string {
  const { code = "", state = "", error } = query;
  if (error !== undefined) {
    const message = query.error_description ?? error;
    return page("Not connected", `<main><h1>Not connected</h1><p>${html(provider)} says: ${html(message)}</p></main>`);
  }
  const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const command = `hangar connectors finish ${quote(provider)} --code ${quote(code)} --state ${quote(state)}`;
  return page(
    "Almost connected",
    `<main><h1>Almost connected</h1><p>Finish with this command, within 15 minutes:</p><pre>${html(command)}</pre></main>`,
  );
}
