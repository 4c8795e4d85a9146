import type { Guard } from "#http/access.ts";

const SCHEME = /^(?:bearer|flyv1|svcv1)(?:\s+|$)/i;
const OURS = /^h[fm]1_/;

/** Fly's clients send several tokens behind one or more schemes: `FlyV1 fm2_…,hm1_…`. The platform uses its own one. */
export function ownToken(authorization: string | undefined): string | undefined {
  let text = authorization?.trim() ?? "";
  while (SCHEME.test(text)) text = text.replace(SCHEME, "");
  const tokens = text.split(",").flatMap((token) => token.trim() || []);
  const token = tokens.find((one) => OURS.test(one)) ?? tokens[0];
  return token === undefined ? undefined : `Bearer ${token}`;
}

/** The platform's guard, for tokens in the format of these clients. */
export function flyGuard(guard: Guard): Guard {
  const prefetch = guard.prefetch?.bind(guard);
  return {
    ...(prefetch ? { prefetch: (authorization, wanted) => prefetch(ownToken(authorization), wanted) } : {}),
    identify: (authorization, _rule, request) => guard.identify(ownToken(authorization), "any", request),
    admit: (caller, access, target) => guard.admit(caller, access, target),
  };
}
