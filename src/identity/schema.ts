import { Type } from "#http/schema.ts";
import { IDENTITY_LIMITS as LIMITS } from "./limits.ts";

const texts = Type.Array(Type.String());

export const TokenInput = Type.Object({
  aud: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: LIMITS.audience_chars,
      description: "Audience of the token; the platform's base URL + `/` + the organization by default.",
    }),
  ),
  alg: Type.Optional(
    Type.Union([Type.Literal("RS256"), Type.Literal("ES256")], { description: "`RS256` when left out." }),
  ),
});

export const Configuration = Type.Object({
  issuer: Type.String(),
  jwks_uri: Type.String(),
  response_types_supported: texts,
  subject_types_supported: texts,
  id_token_signing_alg_values_supported: texts,
  scopes_supported: texts,
  claims_supported: texts,
});

export const Jwks = Type.Object({
  keys: Type.Array(
    Type.Object({
      kid: Type.String(),
      alg: Type.Union([Type.Literal("RS256"), Type.Literal("ES256")]),
      use: Type.Literal("sig"),
      kty: Type.Optional(Type.String()),
      n: Type.Optional(Type.String()),
      e: Type.Optional(Type.String()),
      crv: Type.Optional(Type.String()),
      x: Type.Optional(Type.String()),
      y: Type.Optional(Type.String()),
    }),
  ),
});

export const Rotate = Type.Object({
  revoke: Type.Optional(Type.Boolean({ description: "The old keys are compromised: revoke them now." })),
});

export const KeyList = Type.Object({
  keys: Type.Array(
    Type.Object({
      kid: Type.String(),
      alg: Type.String(),
      state: Type.String({ description: "`waiting`, `signing` or `retired`." }),
      created_at: Type.String(),
      sign_from: Type.String(),
      publish_until: Type.Optional(Type.String()),
    }),
  ),
});
