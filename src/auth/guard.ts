import { assert } from "#core/assert.ts";
import type { Action } from "#core/caveats.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Admitted, Caller, Guard, Prefetch, SchemeRule, Scope, Target } from "#http/access.ts";
import { Principal } from "./principal.ts";
import type { AuthStore } from "./store.ts";
import { type TokenService, tokenIdOf, unauthorized } from "./tokens.ts";

/** Finds an app's organization. Implemented by the apps' store. */
export interface AppDirectory {
  findApp(name: string): Promise<{ id: string; name: string; org_id: string } | undefined>;
}

export const DEFAULT_ORG = "personal";

interface GuardParts {
  tokens: TokenService;
  store: AuthStore;
  apps: AppDirectory;
  clock: Clock;
  prefetch: Prefetch | undefined;
}

export function createGuard(parts: GuardParts): Guard {
  const { prefetch } = parts;
  return {
    ...(prefetch && {
      prefetch: (authorization, wanted) => prefetch({ ...wanted, token_id: tokenIdOf(authorization) }),
    }),
    identify: (authorization, rule) =>
      rule === "registry" || rule === "git"
        ? identifyByPassword(parts, authorization, rule)
        : identify(parts, authorization, rule),
    async admit(caller, access, target) {
      const principal = principalOf(caller);
      if (access === "any") return {};
      const [action, scope] = access.split(" ") as [Action, Scope];
      checkRights(parts, principal, action, scope, target);
      return await lookUp(parts, principal, scope, target);
    },
  };
}

export function principalOf(caller: Caller): Principal {
  assert(caller instanceof Principal, "callers come from identify");
  return caller;
}

async function identify(
  { tokens }: GuardParts,
  authorization: string | undefined,
  rule: SchemeRule,
): Promise<Principal> {
  if (!authorization?.trim()) unauthorized("there is no token in this request");
  const parts = authorization.trim().split(/\s+/);
  const text = parts.pop() ?? "";
  const schemes = parts.map((part) => part.toLowerCase());
  if (schemes.length === 0) unauthorized("the Authorization header has no scheme before the token");
  const unknown = schemes.find((scheme) => scheme !== "bearer" && scheme !== "svcv1");
  if (unknown !== undefined) unauthorized("the Authorization scheme must be Bearer, or SvcV1 for created tokens");
  const principal = await tokens.verify(text);
  const full = principal.kind === "full";
  if (full && schemes.includes("svcv1"))
    wrongScheme("this is a full-access token: send it as `Authorization: Bearer <token>`");
  if (rule === "metrics" && (schemes.length > 1 || (!full && schemes[0] !== "svcv1"))) {
    wrongScheme(
      full
        ? "metrics queries take a full-access token as `Authorization: Bearer <token>`"
        : "metrics queries take a created token as `Authorization: SvcV1 <token>`",
    );
  }
  return principal;
}

/** The realm that clients show in a password prompt. */
const REALMS = { registry: "Hangar registry", git: "Hangar Git" } as const;

/** Clients of registries and Git send a token as a password, and only after a challenge. */
async function identifyByPassword(
  parts: GuardParts,
  authorization: string | undefined,
  rule: keyof typeof REALMS,
): Promise<Principal> {
  const [, encoded] = /^basic +(\S+)$/i.exec(authorization?.trim() ?? "") ?? [];
  const [, password] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded ?? "", "base64").toString()) ?? [];
  try {
    return await identify(parts, encoded === undefined ? authorization : `Bearer ${password ?? ""}`, "any");
  } catch (thrown) {
    if (!(thrown instanceof ApiError) || thrown.code !== "unauthorized") throw thrown;
    const headers = { ...thrown.extras.headers, "www-authenticate": `Basic realm="${REALMS[rule]}"` };
    const hint = "log in with any user name and a token of the platform as the password";
    throw new ApiError(thrown.code, thrown.message, { ...thrown.extras, headers, hint });
  }
}

function wrongScheme(text: string): never {
  fail("unauthorized", text, { headers: { "www-authenticate": "Bearer, SvcV1" } });
}

/** Checks the token's caveats before any lookup, so that a refusal reveals nothing about what exists. */
function checkRights({ clock }: GuardParts, principal: Principal, action: Action, scope: Scope, target: Target): void {
  if (scope === "account") {
    if (principal.kind === "full") return;
    fail("forbidden", "this needs a full-access token; a token of one organization can only be narrowed", {
      hint: "`hangar tokens attenuate` makes a narrower token from this one offline",
    });
  }
  const reason = principal.refuses({
    action,
    now_ms: clock.now(),
    ...(target.app_name === undefined ? {} : { app: target.app_name }),
    ...(target.machine_id === undefined ? {} : { machine: target.machine_id }),
  });
  if (reason) fail("forbidden", reason, { hint: "`hangar tokens inspect` says what a token may do" });
}

async function lookUp(
  { store, apps }: GuardParts,
  principal: Principal,
  scope: Scope,
  target: Target,
): Promise<Admitted> {
  if (target.app_name !== undefined) {
    const app = await apps.findApp(target.app_name);
    const org = app && (await store.findOrgById(app.org_id));
    if (!app || !org || !principal.sees(org))
      fail("not_found", `Could not find App ${JSON.stringify(target.app_name)}`);
    return { app, org };
  }
  // Only routes about one organization fall back to the caller's own.
  const slug = target.org_slug ?? (scope === "org" ? (principal.org?.slug ?? DEFAULT_ORG) : undefined);
  return slug === undefined ? {} : { org: await visibleOrg(store, principal, slug) };
}

async function visibleOrg(store: AuthStore, principal: Principal, slug: string): Promise<{ id: string; slug: string }> {
  const org = await store.findOrg(slug);
  if (!org || !principal.sees(org)) fail("not_found", `there is no organization ${JSON.stringify(slug)}`);
  return org;
}
