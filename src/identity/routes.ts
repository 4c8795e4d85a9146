import type { AuthStore } from "#auth/store.ts";
import type { Org } from "#auth/types.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { ALGS } from "#core/jwt.ts";
import { orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { RateLimiter } from "#http/rate.ts";
import { type Row, route } from "#http/route.ts";
import type { KeyRing } from "./keys.ts";
import { IDENTITY_LIMITS as LIMITS } from "./limits.ts";
import { machineOf } from "./local-guard.ts";
import * as schema from "./schema.ts";
import type { SigningKey } from "./store.ts";
import type { Issuer } from "./tokens.ts";

interface Parts {
  issuer: Issuer;
  keys: KeyRing;
  orgs: Pick<AuthStore, "findOrg">;
  clock: Clock;
}

/** Public documents that verifiers of tokens read. */
export function issuerRoutes(parts: Parts): Row[] {
  const { issuer, keys } = parts;
  const common = { part: "identity", access: "open", cache_s: LIMITS.jwks_cache_s } as const;
  return [
    route("GET /oidc/:org_slug/.well-known/openid-configuration", {
      ...common,
      summary: "The issuer of an organization's identity tokens",
      response: { status: 200, schema: schema.Configuration },
      errors: ["not_found"],
      handle: async ({ params }) => issuer.configuration((await known(parts, params.org_slug)).slug),
    }),
    route("GET /oidc/:org_slug/.well-known/jwks.json", {
      ...common,
      summary: "The keys an organization's identity tokens are signed with",
      description: "New keys are published an hour before they sign, old ones until their last token has expired.",
      response: { status: 200, schema: schema.Jwks },
      errors: ["not_found"],
      handle: async ({ params }) => ({ keys: await keys.published((await known(parts, params.org_slug)).id) }),
    }),
  ];
}

async function known({ orgs }: Parts, slug: string): Promise<Org> {
  return (await orgs.findOrg(slug)) ?? fail("not_found", `there is no issuer ${JSON.stringify(slug)}`);
}

/** Administration of keys. */
export function keyRoutes({ keys, clock }: Parts): Row[] {
  const answer = (all: readonly SigningKey[], shown = all) => {
    const now = clock.now();
    const signing = new Set(ALGS.map((alg) => all.find((key) => key.alg === alg && key.sign_from <= now)?.id));
    return {
      keys: shown.map(({ id, alg, created_at, sign_from, publish_until }) => ({
        kid: id,
        alg,
        state: sign_from > now ? "waiting" : signing.has(id) ? "signing" : "retired",
        created_at: isoTime(created_at),
        sign_from: isoTime(sign_from),
        ...(publish_until === null ? {} : { publish_until: isoTime(publish_until) }),
      })),
    };
  };
  return [
    route("GET /v1/orgs/:org_slug/oidc/keys", {
      summary: "The issuer's keys and their states",
      part: "identity",
      access: "read org",
      pages: inPages("keys", ["number", "text"]),
      response: { status: 200, schema: schema.KeyList },
      async handle({ page, ...call }) {
        const all = await keys.all(orgOf(call).id);
        return answer(
          all,
          page.of(all, ({ sign_from, id }) => [-sign_from, id]),
        );
      },
    }),
    route("POST /v1/orgs/:org_slug/oidc/rotate", {
      summary: "Rotate the issuer's keys now",
      description:
        "They sign an hour from now; with `revoke` at once, and the old ones are gone with every token they signed. Keys are changed every 30 days without asking.",
      part: "identity",
      access: "write account",
      body: schema.Rotate,
      response: { status: 200, schema: schema.KeyList },
      async handle({ body, ...call }) {
        const { id } = orgOf(call);
        await keys.rotate(id, { revoke: body.revoke ?? false });
        return answer(await keys.all(id));
      },
    }),
  ];
}

/** Routes for a machine at its own socket only. */
export function tokenRoutes({ issuer, clock }: Parts): Row[] {
  const bound = `a machine may request ${LIMITS.tokens_per_second} tokens a second (limit tokens_per_second)`;
  const rate = new RateLimiter(LIMITS.tokens_per_second, clock, bound);
  return [
    route("POST /v1/tokens/oidc", {
      summary: "A new identity token of this machine",
      part: "identity",
      access: "machine",
      body: schema.TokenInput,
      any_type: true,
      response: { status: 200, type: "text/plain" },
      async handle({ body, caller }) {
        const { machine, sprite, token_id } = machineOf(caller);
        rate.acquire(token_id);
        return await issuer.issue(machine, sprite.org, { aud: body.aud, alg: body.alg });
      },
    }),
  ];
}
