/** Git webhooks, put together: how repositories elsewhere are reached, and whose token deploys. Part of wiring/git.ts. */
import { principalOf } from "#auth/guard.ts";
import type { Principal } from "#auth/principal.ts";
import type { Caveat } from "#core/caveats.ts";
import { ApiError, fail } from "#core/errors.ts";
import { GuardedFetch } from "#core/guarded-agent.ts";
import type { Ids } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import { AddressRefused, literalProblem } from "#core/public-addresses.ts";
import { PushRefused } from "#git/hook.ts";
import { GIT_LIMITS } from "#git/limits.ts";
import type { SendRemote } from "#git/remote-repository.ts";
import type { GitApp } from "#git/types.ts";
import type { Caller } from "#http/access.ts";
import type { PreviewNeeds } from "./previews.ts";

const allowed = (host: string): string => `the operator can allow it: HANGAR_GIT_ALLOW_PRIVATE=${host}`;

/** Over TLS to public addresses, and to the hosts that the operator named. */
export function openRemote(allow_private: readonly string[]): { send: SendRemote; close(): Promise<void> } {
  const http = new GuardedFetch({ connect_timeout_ms: GIT_LIMITS.remote_connect_ms });
  return {
    async send(url, request) {
      try {
        const guarded = !allow_private.includes(url.host);
        const { status, headers, body } = await http.fetch(url, request, { guarded });
        return { status, headers, body: body as AsyncIterable<Uint8Array> | null };
      } catch (thrown) {
        const cause = thrown instanceof Error ? thrown.cause : undefined;
        if (cause instanceof AddressRefused) throw new PushRefused(`${cause.message}; ${allowed(url.host)}`);
        if (!(cause instanceof Error)) throw thrown;
        throw new PushRefused(`${url.host} cannot be reached: ${cause.message}`);
      }
    },
    close: () => http.close(),
  };
}

/** The address of a repository as it is kept. */
export function checkAddress(text: string, allow_private: readonly string[]): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const is_private = url !== undefined && allow_private.includes(url.host);
  const wrong = (problem: string): never =>
    fail("invalid_request", `body.repository ${problem}`, {
      details: [{ path: "body.repository", problem, allowed: "https://host/owner/name.git" }],
    });
  if (!url || (url.protocol !== "https:" && !(url.protocol === "http:" && is_private)))
    return wrong("is not an address that begins with https://");
  if (url.username !== "" || url.password !== "") return wrong("has credentials in it: give them beside it");
  if (url.search !== "" || url.hash !== "") return wrong("has more than a path in it");
  const problem = is_private ? undefined : literalProblem(url.hostname);
  if (problem) fail("address_refused", problem.message, { hint: allowed(url.host) });
  return url.href.replace(/\/+$/, "");
}

/** A token of the app's that a webhook keeps: it does what its maker's may do with the app, and falls with that. */
export async function webhookTokenFor(
  { tokens, orgs }: Pick<PreviewNeeds, "tokens" | "orgs">,
  { caller, app, org_slug, ids }: { caller: Caller; app: GitApp; org_slug: string; ids: Ids },
): Promise<{ text: string; id: string }> {
  const maker = principalOf(caller);
  const org = await orgs.get(org_slug);
  const wanted = { org, kind: "deploy", name: `Git webhook of ${app.name}`, maker, app: app.name } as const;
  const { text, token } = await tokens.create({ ...wanted, expiry_ms: LIMITS.token_expiry_ms }, ids);
  return { text, id: token.id };
}

/** What the kept token is good for during one deploy. */
export async function narrowed(
  { tokens }: Pick<PreviewNeeds, "tokens">,
  text: string,
  narrow: readonly Caveat[],
): Promise<string> {
  const principal: Principal = await tokens.verify(text).catch((thrown: unknown) => {
    if (!(thrown instanceof ApiError)) throw thrown;
    throw new PushRefused(
      `The token that made this webhook is no longer good: ${thrown.message}. hangar git connect again.`,
    );
  });
  return principal.attenuated(narrow);
}
