import type { Action } from "#core/caveats.ts";
import { type Clock, isoTime } from "#core/clock.ts";
import { parseDuration } from "#core/durations.ts";
import { fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { type AppDirectory, principalOf } from "./guard.ts";
import type { OrgService } from "./orgs.ts";
import type { Principal } from "./principal.ts";
import * as schema from "./schema.ts";
import type { SignInCodes } from "./sign-in.ts";
import type { AuthStore } from "./store.ts";
import type { TokenService } from "./tokens.ts";
import type { Org, Token } from "./types.ts";

interface Parts {
  orgs: OrgService;
  tokens: TokenService;
  store: AuthStore;
  apps: AppDirectory;
  clock: Clock;
  codes: SignInCodes;
}

export function authRoutes(parts: Parts): Row[] {
  return [...orgRoutes(parts), ...tokenRoutes(parts), ...ownTokenRoutes(parts), ...signInRoutes(parts)];
}

function orgRoutes({ orgs }: Parts): Row[] {
  return [
    route("GET /v1/orgs", {
      summary: "List the organizations this token can see",
      part: "orgs",
      access: "any",
      pages: inPages("organizations", ["text"]),
      response: { status: 200, schema: schema.OrgList },
      async handle({ caller, page }) {
        const visible = await orgs.visibleTo(principalOf(caller));
        return { organizations: page.of(visible, ({ slug }) => [slug]).map(orgResponse) };
      },
    }),
    route("POST /v1/orgs", {
      summary: "Create an organization",
      part: "orgs",
      access: "create account",
      body: schema.CreateOrg,
      response: { status: 201, schema: schema.OrgResponse },
      errors: ["name_taken", "invalid_name", "limit_reached"],
      handle: async ({ body, ids }) => orgResponse(await orgs.create(body, ids)),
    }),
    route("GET /v1/orgs/:org_slug", {
      summary: "Get an organization",
      part: "orgs",
      access: "read org",
      response: { status: 200, schema: schema.OrgResponse },
      handle: async ({ params }) => orgResponse(await orgs.get(params.org_slug)),
    }),
    route("DELETE /v1/orgs/:org_slug", {
      summary: "Delete an organization that has no apps; its tokens stop working",
      part: "orgs",
      access: "delete account",
      response: { status: 204 },
      errors: ["org_not_empty"],
      handle: async ({ params }) => await orgs.delete(params.org_slug),
    }),
  ];
}

function tokenRoutes({ tokens, store, orgs }: Parts): Row[] {
  return [
    route("POST /v1/orgs/:org_slug/tokens", {
      summary: "Create a token for one organization",
      description: "The token is shown only in this response. Its holder can narrow it offline.",
      part: "orgs",
      access: "create account",
      credential: true,
      body: schema.CreateToken,
      response: { status: 201, schema: schema.CreatedToken },
      errors: ["limit_reached"],
      async handle({ params, body, ids, caller }) {
        const org = await orgs.get(params.org_slug);
        const expiry_ms = expiryOf(body.expiry);
        const wanted = { org, kind: body.kind, name: body.name ?? "", expiry_ms, maker: principalOf(caller) };
        const { text, token } = await tokens.create(wanted, ids);
        return { token: text, ...tokenResponse(token) };
      },
    }),
    route("GET /v1/orgs/:org_slug/tokens", {
      summary: "List an organization's tokens, revoked ones too",
      part: "orgs",
      access: "read org",
      pages: inPages("tokens", ["text"]),
      response: { status: 200, schema: schema.TokenList },
      async handle({ page, ...admitted }) {
        const found = await store.tokens(orgOf(admitted).id, page.request);
        return { tokens: page.take(found, ({ id }) => [id]).map(tokenResponse) };
      },
    }),
    route("DELETE /v1/orgs/:org_slug/tokens/:token_id", {
      summary: "Revoke a token, with everything that was made from it",
      part: "orgs",
      access: "delete account",
      response: { status: 200, schema: schema.TokenResponse },
      async handle({ params, ...admitted }) {
        const token = await tokens.revoke(orgOf(admitted).id, params.token_id);
        return tokenResponse(
          token ?? fail("not_found", `organization ${params.org_slug} has no token ${JSON.stringify(params.token_id)}`),
        );
      },
    }),
    route("POST /v1/apps/:app_name/deploy_token", {
      summary: "Create a token for one app",
      part: "apps",
      access: "create account",
      credential: true,
      body: schema.CreateDeployToken,
      response: { status: 200, schema: schema.CreatedToken },
      errors: ["limit_reached"],
      async handle({ params, body, ids, caller, ...admitted }) {
        const expiry_ms = expiryOf(body.expiry);
        const name = body.name ?? `deploy ${params.app_name}`.slice(0, LIMITS.token_name_chars);
        const wanted = {
          org: await orgs.get(orgOf(admitted).slug),
          kind: "deploy" as const,
          name,
          expiry_ms,
          app: params.app_name,
          maker: principalOf(caller),
        };
        const { text, token } = await tokens.create(wanted, ids);
        return { token: text, ...tokenResponse(token) };
      },
    }),
  ];
}

function ownTokenRoutes(parts: Parts): Row[] {
  const { tokens, clock } = parts;
  return [
    route("GET /v1/tokens/current", {
      summary: "Show the caller's token and its rights",
      part: "platform",
      access: "any",
      response: { status: 200, schema: schema.CurrentTokens },
      async handle({ caller }) {
        const principal = principalOf(caller);
        const { token_id, kind, name, org } = principal;
        const of = { org_slug: org?.slug ?? null, organization: org?.name ?? null };
        return { tokens: [{ token_id, kind, name, ...of, rights: principal.words() }] };
      },
    }),
    route("POST /v1/tokens/authorize", {
      summary: "Check whether a token allows an action",
      part: "platform",
      access: "any",
      body: schema.Authorize,
      response: { status: 200, schema: schema.Authorized },
      async handle({ caller, body }) {
        const principal = body.token === undefined ? principalOf(caller) : await tokens.verify(body.token);
        const reason = principal.refuses({
          action: body.action as Action,
          now_ms: clock.now(),
          ...(body.org_slug === undefined ? {} : { org: body.org_slug }),
          ...(body.app_name === undefined ? {} : { app: body.app_name }),
          ...(body.machine_id === undefined ? {} : { machine: body.machine_id }),
        });
        const refusal = reason ?? (await missingApp(parts, principal, body));
        return refusal === undefined ? { allowed: true } : { allowed: false, reason: refusal };
      },
    }),
  ];
}

/** As a request would find out: to a token, apps of other organizations do not exist. One that is created need not. */
async function missingApp(
  { apps, store }: Parts,
  principal: Principal,
  { app_name, org_slug, action }: { app_name?: string; org_slug?: string; action: string },
): Promise<string | undefined> {
  if (app_name === undefined) return undefined;
  const app = await apps.findApp(app_name);
  if (!app && action === "create") return undefined;
  const org = app && (await store.findOrgById(app.org_id));
  const found = org && principal.sees(org) && (org_slug ?? org.slug) === org.slug;
  return found ? undefined : `Could not find App ${JSON.stringify(app_name)}`;
}

function signInRoutes({ codes }: Parts): Row[] {
  return [
    route("POST /v1/tokens/sign_in_codes", {
      summary: "Create a one-time sign-in code for the dashboard",
      part: "platform",
      access: "any",
      credential: true,
      response: { status: 201, schema: schema.SignInCode },
      async handle({ header, caller }) {
        const token = (header("authorization") ?? "").trim().split(/\s+/).at(-1) ?? "";
        const { code, expires_ms } = codes.issue(token, caller.token_id);
        return { code, expires_at: isoTime(expires_ms) };
      },
    }),
    route("POST /v1/tokens/sign_in", {
      summary: "Exchange a sign-in code for its token",
      part: "platform",
      access: "open",
      body: schema.SignIn,
      response: { status: 200, schema: schema.SignedIn },
      errors: ["unauthorized"],
      handle: async ({ body }) => ({ token: codes.redeem(body.code) }),
    }),
  ];
}

function expiryOf(expiry: string | number | undefined): number {
  if (expiry === undefined) return LIMITS.token_expiry_ms;
  const ms = typeof expiry === "number" ? expiry * 1000 : parseDuration(expiry);
  if (ms === undefined || ms <= 0 || ms > LIMITS.token_expiry_ms) {
    fail("invalid_request", "body.expiry is not a duration of at most 20 years", {
      details: [
        {
          path: "body.expiry",
          problem: "is not a usable duration",
          allowed: "seconds, or for example 30d, 12h, 1h30m; at most 20 years",
        },
      ],
    });
  }
  return ms;
}

function orgResponse({ id, name, slug, numeric_id, created_at }: Org) {
  return { id, name, slug, internal_numeric_id: numeric_id, created_at };
}

function tokenResponse({ id, kind, name, created_at, expires_at, revoked_at }: Token) {
  const time = (at: number | null): string | null => (at === null ? null : isoTime(at));
  return {
    id,
    kind,
    name,
    created_at: isoTime(created_at),
    expires_at: time(expires_at),
    revoked_at: time(revoked_at),
  };
}
