import type { OrgService } from "#auth/orgs.ts";
import type { Principal } from "#auth/principal.ts";
import type { TokenService } from "#auth/tokens.ts";
import { ALL_ACTIONS, type Caveat } from "#core/caveats.ts";
import type { Clock } from "#core/clock.ts";
import { repeatableIds } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import { attenuate, parse, serialize } from "#core/macaroon.ts";
import type { Sealer } from "#core/sealer.ts";

export interface DeployTokenNeeds {
  tokens: TokenService;
  orgs: OrgService;
  sealer: Sealer;
  clock: Clock;
}

interface Wanted {
  app: { id: string; name: string };
  org_slug: string;
  /** Names the seed of a token made from a full-access one. */
  purpose: string;
  lasts_ms: number;
}

/**
 * The caller's token, good for this app and as long as a deploy may take. A full-access token cannot be narrowed: one is
 * made from it, the same one for every deploy of the app in a month, and it is revoked with its maker. Ended tokens are
 * forgotten after as long, so one that was revoked is never made again.
 */
export async function deployTokenFor(
  { tokens, orgs, sealer, clock }: DeployTokenNeeds,
  principal: Principal,
  { app, org_slug, purpose, lasts_ms }: Wanted,
): Promise<string> {
  const not_after_s = Math.ceil((clock.now() + lasts_ms) / 1000);
  const narrow: Caveat[] = [
    { type: "apps", apps: { [app.name]: ALL_ACTIONS } },
    { type: "validity", not_before_s: 0, not_after_s },
  ];
  if (principal.kind !== "full") return principal.attenuated(narrow);
  const org = await orgs.get(org_slug);
  const period = Math.floor(clock.now() / LIMITS.ended_tokens_kept_ms);
  const seed = sealer.derive(`${purpose} ${principal.token_id} ${app.id} ${period}`);
  const wanted = { org, kind: "deploy", name: principal.name, maker: principal, app: app.name } as const;
  const { text } = await tokens.create(
    { ...wanted, expiry_ms: 2 * LIMITS.ended_tokens_kept_ms },
    repeatableIds(seed, org.created_at),
  );
  return serialize(attenuate(parse(text), narrow));
}
