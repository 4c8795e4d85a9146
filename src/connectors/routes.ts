import { principalOf } from "#auth/guard.ts";
import type { OrgService } from "#auth/orgs.ts";
import { type Admitted, type Caller, orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import type { AuditLog } from "./audit-log.ts";
import { addressWarnings, baseUrl, customInfo } from "./custom.ts";
import type { Gateway } from "./gateway.ts";
import { policyWarnings } from "./policy.ts";
import { auditResponse, connectionResponse, policyOf, usageResponse } from "./responses.ts";
import * as schema from "./schema.ts";
import { bad, type ConnectorService, type Owner } from "./service.ts";
import type { SpriteFinder } from "./sprite.ts";
import type { ConnectorStore } from "./store.ts";
import type { GatewayTester } from "./tester.ts";
import type { AccessPolicy, AuditAction, Connection } from "./types.ts";

interface ConnectorRouteParts {
  connectors: ConnectorService;
  gateway: Gateway;
  tester: GatewayTester;
  store: ConnectorStore;
  audit_log: AuditLog;
  orgs: OrgService;
  sprites: SpriteFinder;
  allow_private: boolean;
  sprites_base_url(): string;
}

export function connectorRoutes(parts: ConnectorRouteParts): Row[] {
  return [...createRoutes(parts), ...ownRoutes(parts), ...changeRoutes(parts), ...lookRoutes(parts)];
}

export const ownerOf = ({ caller, ...admitted }: Admitted & { caller: Caller }): Owner => ({
  org: orgOf(admitted),
  maker: principalOf(caller),
});

const policy = (given: AccessPolicy | undefined) => (given ? { access_policy: policyOf(given) } : {});

/** A created or changed connector, with warnings. */
function answered(connection: Connection, { allow_private, sprites_base_url }: ConnectorRouteParts) {
  const { provider_info, access_policy } = connection;
  const warnings = [...addressWarnings(provider_info, allow_private), ...policyWarnings(access_policy)];
  return {
    connection: connectionResponse(connection, sprites_base_url()),
    ...(warnings.length > 0 ? { warnings } : {}),
  };
}

function createRoutes(parts: ConnectorRouteParts): Row[] {
  const { connectors, orgs } = parts;
  const answer = (connection: Connection) => answered(connection, parts);
  const common = {
    part: "connectors",
    access: "create org",
    credential: true,
    response: { status: 201, schema: schema.One },
    errors: ["limit_reached"],
  } as const;
  return [
    route("POST /v1/oauth/connections/api_key", {
      ...common,
      summary: "Create a connector with a key",
      description:
        "The key is encrypted and never returned. Without an `access_policy` no sprite may use the connector. An object store's key is `ACCESS_KEY_ID:SECRET_ACCESS_KEY`.",
      body: schema.CreateWithKey,
      async handle({ body, ids, ...call }) {
        const { provider, api_key, name, base_url, region, encoded_paths } = body;
        const provider_info = {
          ...(base_url === undefined ? {} : { base_url: baseUrl(base_url, "body.base_url") }),
          ...(region === undefined ? {} : { region }),
          ...(encoded_paths === undefined ? {} : { encoded_paths }),
        };
        const account = name === undefined ? {} : { name };
        const input = { provider, api_key, provider_info, ...account, ...policy(body.access_policy) };
        return answer(await connectors.createWithKey(ownerOf(call), input, ids));
      },
    }),
    route("POST /v1/oauth/connections/custom_api", {
      ...common,
      summary: "Create a connector to any HTTP API",
      description:
        "With `auth_method: path` the token goes where the base address has `{token}`, else it is the first segment after the base.",
      body: schema.CreateCustom,
      async handle({ body, ids, ...call }) {
        const { name, access_token } = body;
        const input = { name, access_token, provider_info: customInfo(body), ...policy(body.access_policy) };
        return answer(await connectors.createCustom(ownerOf(call), input, ids));
      },
    }),
    route("POST /v1/oauth/connections/provision", {
      ...common,
      summary: "Create a connector whose key the platform provides",
      description:
        "`sprites_admin` is this platform itself: machines may then manage their organization, as far as the policy lets them.",
      body: schema.Provision,
      async handle({ body, ids, ...call }) {
        const owner = ownerOf(call);
        const org = await orgs.get(owner.org.slug);
        const input = { provider: body.provider, ...policy(body.access_policy) };
        return answer(await connectors.provision({ ...owner, org }, input, ids));
      },
    }),
  ];
}

/** The connector of a route, if the caller may see it. */
async function found(
  { connectors }: ConnectorRouteParts,
  { params, caller }: { params: { connection_id: string }; caller: Caller },
): Promise<Connection> {
  const principal = principalOf(caller);
  return await connectors.get(params.connection_id, (org) => principal.sees(org));
}

function ownRoutes(parts: ConnectorRouteParts): Row[] {
  const { connectors, sprites_base_url } = parts;
  const answer = (connection: Connection) => connectionResponse(connection, sprites_base_url());
  return [
    route("GET /v1/oauth/connections", {
      summary: "List an organization's connectors",
      part: "connectors",
      access: "read org",
      query: schema.ListQuery,
      pages: inPages("connections", ["number", "text"]),
      response: { status: 200, schema: schema.Many },
      async handle({ query, page, ...call }) {
        const all = await connectors.list(orgOf(call).id, query.provider);
        return { connections: page.of(all, ({ inserted_at, id }) => [-inserted_at, id]).map(answer) };
      },
    }),
    route("GET /v1/oauth/connections/:connection_id", {
      summary: "Get a connector; its secrets are never returned",
      part: "connectors",
      access: "read org",
      response: { status: 200, schema: schema.One },
      handle: async (call) => ({ connection: answer(await found(parts, call)) }),
    }),
    route("PUT /v1/oauth/connections/:connection_id", {
      summary: "Replace a connector's access policy",
      description:
        "Replaces the whole policy; it applies from the next request on. `warnings` lists rules that can never match.",
      part: "connectors",
      access: "write org",
      credential: true,
      body: schema.PutPolicy,
      response: { status: 200, schema: schema.One },
      async handle({ body, ...call }) {
        const connection = await found(parts, call);
        const changed = await connectors.setPolicy(connection, policyOf(body.access_policy), call.caller.name);
        return answered(changed, parts);
      },
    }),
    route("DELETE /v1/oauth/connections/:connection_id", {
      summary: "Delete a connector and its credential, at once",
      part: "connectors",
      access: "delete org",
      response: { status: 204 },
      handle: async (call) => await connectors.delete(await found(parts, call), call.caller.name),
    }),
  ];
}

function changeRoutes(parts: ConnectorRouteParts): Row[] {
  const { connectors, tester, sprites_base_url } = parts;
  return [
    route("PUT /v1/oauth/connections/:connection_id/api_key", {
      summary: "Replace a connector's key",
      part: "connectors",
      access: "write org",
      credential: true,
      body: schema.Rotate,
      response: { status: 200, schema: schema.One },
      async handle({ body, ...call }) {
        const rotated = await connectors.rotate(await found(parts, call), body.api_key, call.caller.name);
        return { connection: connectionResponse(rotated, sprites_base_url()) };
      },
    }),
    route("POST /v1/oauth/connections/:connection_id/test_gateway", {
      summary: "Test a connector: call the provider through the gateway",
      description:
        "With a `sprite` the policy is evaluated for that machine too; without, only the credential is tested.",
      part: "connectors",
      access: "write org",
      body: schema.TestGateway,
      response: { status: 200, schema: schema.TestResponse },
      handle: async ({ body, signal, ...call }) => await tester.test(await found(parts, call), body, signal),
    }),
  ];
}

function lookRoutes(parts: ConnectorRouteParts): Row[] {
  const { gateway, store, audit_log, sprites } = parts;
  return [
    route("POST /v1/oauth/connections/:connection_id/explain", {
      summary: "Show the policy rule that applies to a sprite and a path",
      description: "Evaluates the connector's policy, or a draft. Nothing is called.",
      part: "connectors",
      access: "read org",
      body: schema.Explain,
      response: { status: 200, schema: schema.Explained },
      async handle({ body, ...call }) {
        const { access_policy, provider_info, org_id } = await found(parts, call);
        const sprite = { name: body.sprite, labels: body.labels ?? (await sprites.labels(org_id, body.sprite)) };
        const policy = body.access_policy ? policyOf(body.access_policy) : access_policy;
        return gateway.verdict(policy, sprite, body.path, provider_info.encoded_paths ?? false);
      },
    }),
    route("GET /v1/oauth/connections/:connection_id/usage", {
      summary: "Usage of a connector",
      part: "connectors",
      access: "read org",
      response: { status: 200, schema: schema.UsageResponse },
      async handle(call) {
        await audit_log.flush();
        const [usage] = await Promise.all([store.usage(call.params.connection_id), found(parts, call)]);
        return usageResponse(usage ?? bad("connection_id", "was deleted"));
      },
    }),
    route("GET /v1/oauth/audit", {
      summary: "Audit log of an organization's connectors, newest first",
      part: "connectors",
      access: "read org",
      query: schema.AuditQuery,
      pages: inPages("entries", ["text"], { size: 100 }),
      response: { status: 200, schema: schema.AuditResponse },
      async handle({ query, page, ...call }) {
        await audit_log.flush();
        const { connection_id, action } = query;
        const before = page.after?.[0] ?? query.before;
        const filter = {
          org_id: orgOf(call).id,
          limit: page.request.limit,
          ...(connection_id === undefined ? {} : { connection_id }),
          ...(action === undefined ? {} : { action: action as AuditAction }),
          ...(before === undefined ? {} : { before }),
        };
        return { entries: page.take(await store.audit(filter), ({ id }) => [id]).map(auditResponse) };
      },
    }),
  ];
}
