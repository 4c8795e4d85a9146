import { LIMITS } from "#core/limits.ts";
import { Type } from "#http/schema.ts";

export const OrgResponse = Type.Object({
  id: Type.String(),
  name: Type.String(),
  slug: Type.String(),
  internal_numeric_id: Type.Integer(),
  created_at: Type.Integer({ description: "Epoch milliseconds." }),
});

export const OrgList = Type.Object({ organizations: Type.Array(OrgResponse) });

export const CreateOrg = Type.Object({
  name: Type.String({ minLength: 1, maxLength: LIMITS.org_name_chars }),
  slug: Type.Optional(Type.String({ description: "Derived from the name when left out." })),
});

const Expiry = Type.Union([Type.String({ maxLength: 64 }), Type.Integer({ minimum: 1 })], {
  description: "Lifetime: seconds, or a duration such as `30d`, `12h` or `1h30m`; 20 years by default.",
});

export const CreateToken = Type.Object({
  kind: Type.Union([Type.Literal("org"), Type.Literal("readonly")]),
  name: Type.Optional(Type.String({ maxLength: LIMITS.token_name_chars })),
  expiry: Type.Optional(Expiry),
});

export const CreateDeployToken = Type.Object({
  name: Type.Optional(Type.String({ maxLength: LIMITS.token_name_chars })),
  expiry: Type.Optional(Expiry),
});

const Nullable = Type.Union([Type.String(), Type.Null()]);

export const TokenResponse = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  name: Type.String(),
  created_at: Type.String(),
  expires_at: Nullable,
  revoked_at: Nullable,
});

export const TokenList = Type.Object({ tokens: Type.Array(TokenResponse) });

export const CreatedToken = Type.Object({
  token: Type.String({ description: "The token. It is shown only once." }),
  ...TokenResponse.properties,
});

export const CurrentTokens = Type.Object({
  tokens: Type.Array(
    Type.Object({
      token_id: Type.String(),
      kind: Type.String(),
      name: Type.String(),
      org_slug: Nullable,
      organization: Nullable,
      rights: Type.Array(Type.String(), { description: "Its rights; all lines apply together." }),
    }),
  ),
});

export const Authorize = Type.Object({
  action: Type.Union(["read", "write", "create", "delete", "control"].map((action) => Type.Literal(action))),
  token: Type.Optional(
    Type.String({
      maxLength: LIMITS.token_bytes,
      description: "The token to inspect; the caller's own by default.",
    }),
  ),
  org_slug: Type.Optional(Type.String()),
  app_name: Type.Optional(Type.String({ description: "An app of another organization allows nothing." })),
  machine_id: Type.Optional(
    Type.String({ description: "Compared with the token's caveats; whether it exists is not checked." }),
  ),
});

export const Authorized = Type.Object({
  allowed: Type.Boolean(),
  reason: Type.Optional(Type.String({ description: "Which caveat refuses." })),
});

export const SignInCode = Type.Object({
  code: Type.String(),
  expires_at: Type.String(),
});
export const SignIn = Type.Object({ code: Type.String({ minLength: 1, maxLength: 64 }) });
export const SignedIn = Type.Object({ token: Type.String() });
