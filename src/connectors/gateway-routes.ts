import { assert } from "#core/assert.ts";
import type { Method, Row } from "#http/route.ts";
import { route } from "#http/route.ts";
import type { Gateway } from "./gateway.ts";
import type { OAuthFlow } from "./oauth.ts";
import { judgeSprite } from "./policy.ts";
import { PROVIDERS } from "./providers.ts";
import { gatewayUrl, usageSnippet } from "./responses.ts";
import * as schema from "./schema.ts";
import { spriteOf } from "./sprite.ts";
import type { ConnectorStore } from "./store.ts";

interface Parts {
  gateway: Gateway;
  store: ConnectorStore;
  oauth: OAuthFlow;
  sprites_base_url(): string;
}

/** HEAD is included in GET. */
const METHODS: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Routes for machines, at the platform's address and at every machine's socket. */
export function gatewayRoutes({ gateway, store, oauth, sprites_base_url }: Parts): Row[] {
  return [
    route("GET /v1/gateway/list", {
      summary: "Connectors this machine may use, and available providers",
      part: "connectors",
      access: "machine",
      response: { status: 200, schema: schema.GatewayList },
      async handle({ caller }) {
        const sprite = spriteOf(caller);
        const all = await store.connections(sprite.org.id);
        const usable = all.filter(({ access_policy }) => "passed" in judgeSprite(access_policy, sprite));
        return {
          connected: usable.map((connection) => ({
            provider: connection.provider,
            id: connection.id,
            name: connection.provider_account_name,
            description: PROVIDERS[connection.provider]?.title ?? connection.provider,
            gateway_base_url: gatewayUrl(connection, sprites_base_url()),
            scopes: connection.scopes,
            usage_snippet: usageSnippet(connection, sprites_base_url()),
          })),
          available: Object.entries(PROVIDERS)
            .filter(([name, { made_by }]) => oauth.offers(name) || made_by.some((method) => method !== "oauth"))
            .map(([provider, { title, oauth: flow }]) => ({
              provider,
              name: title,
              default_scopes: [...(flow?.scopes ?? [])],
            })),
        };
      },
    }),
    ...METHODS.map(
      (method): Row => ({
        method,
        path: "/v1/gateway/:provider/:connection_id/*",
        summary: "Call a provider with a connector's credential",
        description:
          "For machines: over their own socket, from their private address, or with an identity token whose audience is `{sprites_base_url}/v1/gateway`. Method, query, body and the provider's own headers pass; the answer is the provider's, as it comes.",
        part: "connectors",
        access: "machine",
        response: { status: 200, type: "*/*" },
        errors: [
          "connector_denied",
          "address_refused",
          "path_not_canonical",
          "upstream_failed",
          "upstream_timeout",
          "connector_unusable",
        ],
        handle: async () => assert(false, "the gateway passes requests on"),
        relay: (exchange) => gateway.relay(exchange),
      }),
    ),
  ];
}
