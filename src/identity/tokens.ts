/** Identity tokens of machines: what they say, and the issuer that third parties trust. */
import { randomUUID } from "node:crypto";
import type { Org } from "#auth/types.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { ALGS, type Alg, type Claims, signToken, splitToken, TokenRefused, verifyToken } from "#core/jwt.ts";
import type { Machine } from "#machines/types.ts";
import type { KeyRing } from "./keys.ts";

interface IssuerParts {
  keys: KeyRing;
  clock: Clock;
  orgs: { findOrg(slug: string): Promise<Org | undefined> };
  lifetime_s: number;
  /** The issuer URL, to which the organization's name is appended. */
  issuer_url(): string;
  /** The default audience. */
  base_url(): string;
}

export interface TokenInput {
  aud?: string | undefined;
  alg?: Alg | undefined;
}

export class Issuer {
  readonly #parts: IssuerParts;

  constructor(parts: IssuerParts) {
    this.#parts = parts;
  }

  /** An organization's issuer: the claim `iss`, and the base of its configuration. */
  url(org_slug: string): string {
    return `${this.#parts.issuer_url()}/${org_slug}`;
  }

  /** Issues a new token each time. */
  async issue(machine: Machine, org: Pick<Org, "id" | "slug">, input: TokenInput): Promise<string> {
    const { keys, clock, lifetime_s } = this.#parts;
    const iat = Math.floor(clock.now() / 1000);
    const audience = input.aud ?? `${this.#parts.base_url()}/${org.slug}`;
    const claims = {
      ...claimsOf(machine, org),
      aud: audience,
      iss: this.url(org.slug),
      iat,
      nbf: iat,
      exp: iat + lifetime_s,
      jti: randomUUID(),
    };
    return await signToken(claims, await keys.signer(org.id, input.alg ?? "RS256"));
  }

  /** Verifies one of our tokens for this audience. Fails with `unauthorized` and the reason. */
  async verify(token: string, audience: string): Promise<Claims> {
    const { keys, clock, orgs } = this.#parts;
    try {
      const { claims } = splitToken(token);
      const slug = typeof claims["org_name"] === "string" ? claims["org_name"] : "";
      const org = await orgs.findOrg(slug);
      if (!org) throw new TokenRefused("the token is another issuer's");
      const expected = { issuer: this.url(org.slug), audience, now_ms: clock.now() };
      return await verifyToken(token, await keys.published(org.id), expected);
    } catch (thrown) {
      if (thrown instanceof TokenRefused) return fail("unauthorized", `authentication failed: ${thrown.message}`);
      throw thrown;
    }
  }

  configuration(org_slug: string) {
    const issuer = this.url(org_slug);
    return {
      issuer,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      response_types_supported: ["id_token"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: [...ALGS],
      scopes_supported: ["openid"],
      claims_supported: [...CLAIMS],
    };
  }
}

/** All of them, as the specification lists them. */
export const CLAIMS = [
  "app_id",
  "app_name",
  "aud",
  "exp",
  "iat",
  "image",
  "image_digest",
  "iss",
  "jti",
  "machine_id",
  "machine_name",
  "machine_version",
  "nbf",
  "org_id",
  "org_name",
  "region",
  "sub",
] as const;

/** Names cannot contain a colon (core/names.ts), so a subject is unambiguous. */
function claimsOf(machine: Machine, org: Pick<Org, "id" | "slug">) {
  const { image_ref } = machine;
  return {
    app_id: machine.app_id,
    app_name: machine.app_name,
    image: machine.config.image,
    image_digest: image_ref.digest,
    machine_id: machine.id,
    machine_name: machine.name,
    machine_version: machine.instance_id,
    org_id: org.id,
    org_name: org.slug,
    region: machine.region,
    sub: `${org.slug}:${machine.app_name}:${machine.name}`,
  };
}
