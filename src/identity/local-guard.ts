/**
 * Authenticates a request over a machine's socket: the machine itself, or a token that was narrowed to the inside of
 * this machine (caveat `from_machine`), which works nowhere else. Other tokens do not work here: one that a program in the
 * machine found or was sent gives it nothing.
 *
 * What a machine may do to itself without a token: look, and start, stop, suspend, signal. It may not change its
 * config or metadata: its labels are there, and they decide which connectors it may use. Of what concerns its app, it
 * is served the leases of databases only (see module.ts).
 */

import { principalOf } from "#auth/guard.ts";
import { Principal } from "#auth/principal.ts";
import type { Action } from "#core/caveats.ts";
import { fail } from "#core/errors.ts";
import type { Admitted, Caller, Guard, Scope, Target } from "#http/access.ts";
import { MachineCaller, type MachineSocketAuthenticator } from "./machine-authenticator.ts";

const ALLOWED: ReadonlySet<Action> = new Set(["read", "control"]);

/** Accepts the platform's tokens in requests through a machine's socket. */
export function tokensInside(platform: Guard, machine_authenticator: MachineSocketAuthenticator): Guard {
  return {
    async identify(authorization, rule, request) {
      const { machine } = await machine_authenticator.identify(request);
      const principal = principalOf(await platform.identify(authorization, rule, request));
      if (!principal.caveats.some(({ type }) => type === "from_machine")) notForInside(machine.id);
      return principal.insideMachine(machine.id);
    },
    admit: (caller, access, target) => platform.admit(caller, access, target),
  };
}

function notForInside(machine_id: string): never {
  fail(
    "forbidden",
    `over a machine's own socket only tokens work that were narrowed to the inside of machine ${machine_id}`,
    {
      hint: `hangar tokens attenuate <token> --from-machine ${machine_id}`,
    },
  );
}

/** An identity token (JWT) has dots; the platform's tokens have none. */
const isPlatformToken = (authorization: string | undefined): authorization is string =>
  authorization !== undefined && !authorization.includes(".");

export function localGuard(machine_authenticator: MachineSocketAuthenticator, tokens: Guard): Guard {
  return {
    async identify(authorization, rule, request) {
      if (isPlatformToken(authorization)) return await tokens.identify(authorization, rule, request);
      return await machine_authenticator.identify(request);
    },
    async admit(caller, access, target) {
      if (caller instanceof Principal) return await tokens.admit(caller, access, target);
      const { machine, sprite } = machineOf(caller);
      const [action, scope] = access.split(" ") as [Action, Scope];
      const ours = SEEN[scope];
      if (!ours || !ALLOWED.has(action))
        fail("forbidden", `a machine may read and control itself; this needs ${access}`);
      if (!ours(target, machine)) fail("not_found", `machine ${machine.id} sees only itself here`);
      const admitted: Admitted = { org: sprite.org, app: { id: machine.app_id, name: machine.app_name } };
      return admitted;
    },
  };
}

type IsVisible = (target: Target, machine: { id: string; app_name: string }) => boolean;

/** Whether a resource of this scope belongs to the machine. */
const SEEN: Partial<Record<Scope, IsVisible>> = {
  app: ({ app_name }, machine) => app_name === machine.app_name,
  machine: ({ app_name, machine_id }, machine) => machine_id === machine.id && app_name === machine.app_name,
};

export function machineOf(caller: Caller): MachineCaller {
  if (!(caller instanceof MachineCaller)) return fail("unauthorized", "this route is only for machines");
  return caller;
}
