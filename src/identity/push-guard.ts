/**
 * Authenticates pushes of metrics: the platform's tokens, and machines themselves. A machine is known by its socket or
 * address, as for every route that is for machines, or at the public API by its identity token with the audience
 * `<base URL>/prometheus`. It may push to its own organization, and its samples get its own labels.
 */
import { fail } from "#core/errors.ts";
import type { Guard, MachineAuthenticator } from "#http/access.ts";
import { MachineCaller } from "./machine-authenticator.ts";

/** An identity token (JWT) has dots; the platform's tokens have none. */
const isIdentityToken = (authorization: string | undefined): boolean =>
  /^Bearer\s+[^\s.]+\.[^\s.]+\.[^\s.]+$/i.test(authorization?.trim() ?? "");

/** `machines` is asked for requests with an identity token, and for those without any where a machine is at the other end. */
export function pushGuard(platform: Guard, machines: MachineAuthenticator, where: "outside" | "inside"): Guard {
  const { prefetch } = platform;
  return {
    ...(prefetch && {
      prefetch: (authorization, wanted) => prefetch(isIdentityToken(authorization) ? undefined : authorization, wanted),
    }),
    async identify(authorization, rule, request) {
      const itself = isIdentityToken(authorization) || (where === "inside" && authorization === undefined);
      return itself ? await machines.identify(request) : await platform.identify(authorization, rule, request);
    },
    async admit(caller, access, target) {
      if (!(caller instanceof MachineCaller)) return await platform.admit(caller, access, target);
      const { org } = caller.sprite;
      if (access !== "write org") fail("forbidden", `a machine may push metrics; this needs ${access}`);
      if (target.org_slug !== org.slug)
        fail(
          "not_found",
          `there is no organization ${JSON.stringify(target.org_slug ?? "")} for a machine of ${org.slug}`,
        );
      return { org };
    },
  };
}
