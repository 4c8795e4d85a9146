import { Type } from "#http/schema.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";

const text = Type.String({ maxLength: LIMITS.policy_text_chars });
const secret = Type.String({ maxLength: LIMITS.credential_chars });
const org_slug = Type.Optional(
  Type.String({ description: "Organization; the token's own, or `personal`, by default." }),
);

export const AccessPolicy = Type.Object(
  {
    allow_all: Type.Optional(Type.Boolean({ description: "All sprites of the organization may use the connector." })),
    allowed_endpoints: Type.Optional(
      Type.Array(text, {
        maxItems: LIMITS.policy_endpoints,
        description: "Provider paths that may be called: exact, or with a `*` at the end. None is all of them.",
      }),
    ),
    blocked_endpoints: Type.Optional(
      Type.Array(text, {
        maxItems: LIMITS.policy_endpoints,
        description: "Provider paths that are blocked; checked before the allowed ones.",
      }),
    ),
    name_prefix: Type.Optional(
      Type.String({ maxLength: LIMITS.policy_text_chars, description: "Prefix of the calling sprite's name." }),
    ),
    sprite_labels: Type.Optional(
      Type.Array(text, {
        maxItems: LIMITS.policy_labels,
        description: "Labels the calling sprite must have, all of them.",
      }),
    ),
  },
  { title: "AccessPolicy" },
);

const ConnectionResponse = Type.Object(
  {
    id: Type.String(),
    provider: Type.String(),
    connection_type: Type.String({ description: "`oauth`, `api_key`, `provisioned` or `internal`." }),
    provider_account_id: Type.String(),
    provider_account_name: Type.String(),
    provider_info: Type.Record(Type.String(), Type.Unknown()),
    scopes: Type.String({ description: "Comma-separated." }),
    token_expires_at: Type.Optional(Type.String()),
    inserted_at: Type.String(),
    updated_at: Type.String(),
    usage_snippet: Type.String({ description: "A command for a shell in a machine." }),
    user_id: Type.String({ description: "The token that created it." }),
    access_policy: AccessPolicy,
  },
  { title: "Connection" },
);

const warnings = Type.Optional(Type.Array(Type.String(), { description: "Warnings." }));
export const One = Type.Object({ connection: ConnectionResponse, warnings });
export const Many = Type.Object({ connections: Type.Array(ConnectionResponse) });

export const ListQuery = Type.Object({
  provider: Type.Optional(Type.String()),
  org_slug: Type.Optional(Type.String()),
});

const options = {
  access_policy: Type.Optional(AccessPolicy),
  encoded_paths: Type.Optional(
    Type.Boolean({ description: "Allow paths with `%2F` and the like, if the policy has no endpoints." }),
  ),
  org_slug,
};

export const CreateWithKey = Type.Object({
  provider: Type.String(),
  api_key: secret,
  name: Type.Optional(Type.String({ maxLength: LIMITS.policy_text_chars, description: "The account's name." })),
  base_url: Type.Optional(
    Type.String({ maxLength: 2048, description: "Base URL, for providers without a common one." }),
  ),
  region: Type.Optional(Type.String({ maxLength: 64, description: "Of an object store; `us-east-1` when left out." })),
  ...options,
});

export const CreateCustom = Type.Object({
  name: Type.String({ maxLength: LIMITS.policy_text_chars }),
  base_api_url: Type.String({ maxLength: 2048 }),
  access_token: secret,
  auth_method: Type.Union([Type.Literal("header"), Type.Literal("query"), Type.Literal("path")], {
    description: "Where the token goes.",
  }),
  auth_header_prefix: Type.Optional(
    Type.String({
      maxLength: 64,
      description: "Before the token in the header; `Bearer` when left out, empty for none.",
    }),
  ),
  auth_header_name: Type.Optional(Type.String({ maxLength: 128, description: "`Authorization` when left out." })),
  auth_query_name: Type.Optional(Type.String({ maxLength: 128, description: "`access_token` when left out." })),
  test_url: Type.Optional(
    Type.String({ maxLength: 2048, description: "What a test calls: an address below the base, or a path." }),
  ),
  ...options,
});

export const Provision = Type.Object({ provider: Type.String(), access_policy: Type.Optional(AccessPolicy), org_slug });
export const Rotate = Type.Object({ api_key: secret });
export const PutPolicy = Type.Object({ access_policy: AccessPolicy });

export const TestGateway = Type.Object({
  sprite: Type.Optional(Type.String({ description: "A machine's name: the policy is evaluated for it too." })),
  labels: Type.Optional(Type.Array(text)),
  path: Type.Optional(Type.String({ maxLength: 4096, description: "A read-only call of the provider when left out." })),
});
export const TestResponse = Type.Object({
  status: Type.String({ description: "`ok` or `error`." }),
  message: Type.String(),
  latency_ms: Type.Integer(),
});

export const Explain = Type.Object({
  sprite: Type.String({ description: "A machine's name." }),
  labels: Type.Optional(Type.Array(text)),
  path: Type.String({ maxLength: 4096 }),
  access_policy: Type.Optional(AccessPolicy),
});
export const Explained = Type.Object({ allowed: Type.Boolean(), rule: Type.String(), reason: Type.String() });

export const UsageResponse = Type.Object({
  calls: Type.Integer(),
  denials: Type.Integer(),
  failures: Type.Integer({ description: "Calls that failed because the provider was unreachable or broke off." }),
  bytes_sent: Type.Integer(),
  bytes_received: Type.Integer(),
  last_used_at: Type.Optional(Type.String()),
});

export const AuditQuery = Type.Object({
  connection_id: Type.Optional(Type.String()),
  action: Type.Optional(
    Type.String({ description: "`created`, `policy`, `rotated`, `refreshed`, `deleted`, `call` or `denied`." }),
  ),
  before: Type.Optional(Type.String({ description: "Only entries older than the one with this id." })),
  org_slug: Type.Optional(Type.String()),
});
export const AuditResponse = Type.Object({
  entries: Type.Array(
    Type.Object({
      id: Type.String(),
      at: Type.String(),
      connection_id: Type.String(),
      action: Type.String(),
      actor: Type.String(),
      method: Type.Optional(Type.String()),
      path: Type.Optional(Type.String()),
      status: Type.Optional(Type.Integer()),
      rule: Type.Optional(Type.String()),
    }),
  ),
});

export const ProviderList = Type.Object({
  providers: Type.Array(
    Type.Object({
      provider: Type.String(),
      title: Type.String(),
      category: Type.String(),
      connected_by: Type.Array(Type.String(), { description: "What can be used on this platform." }),
      default_scopes: Type.Array(Type.String()),
    }),
  ),
});

export const AuthorizeQuery = Type.Object({
  scopes: Type.Optional(
    Type.String({ maxLength: 4096, description: "Comma-separated; the provider's default ones when left out." }),
  ),
  add_scopes: Type.Optional(Type.String({ maxLength: 4096, description: "Beyond the default ones." })),
  state: Type.Optional(Type.String({ maxLength: 512, description: "Returned unchanged; generated when left out." })),
  redirect_uri: Type.Optional(Type.String({ maxLength: 2048, description: "The platform's own page when left out." })),
  org_slug: Type.Optional(Type.String()),
});
export const Authorization = Type.Object({ authorize_url: Type.String(), state: Type.String() });
export const CallbackQuery = Type.Object({
  code: Type.Optional(Type.String()),
  state: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  error_description: Type.Optional(Type.String()),
});
export const Finish = Type.Object({
  code: Type.String({ maxLength: 4096 }),
  state: Type.String({ maxLength: 512 }),
  access_policy: Type.Optional(AccessPolicy),
  org_slug,
});

export const GatewayList = Type.Object({
  connected: Type.Array(
    Type.Object({
      provider: Type.String(),
      id: Type.String(),
      name: Type.String(),
      description: Type.String(),
      gateway_base_url: Type.String(),
      scopes: Type.String(),
      usage_snippet: Type.String(),
    }),
  ),
  available: Type.Array(
    Type.Object({ provider: Type.String(), name: Type.String(), default_scopes: Type.Array(Type.String()) }),
  ),
});
