/**
 * What a machine may do to itself over its socket: look, and start, stop, suspend, signal. It may not change its
 * config or metadata: its labels are there, and they decide which connectors it may use. Of what concerns its app, it
 * is served the leases of databases only (see room.ts).
 */
import type { Action } from "#core/caveats.ts";
import { fail } from "#core/errors.ts";
import type { Admitted, Caller, Guard, Scope, Target } from "#http/access.ts";
import { MachineCaller, type MachineInsiders } from "./insiders.ts";

const ALLOWED: ReadonlySet<Action> = new Set(["read", "control"]);

export function localGuard(insiders: MachineInsiders): Guard {
  return {
    identify: async (_authorization, _rule, request) => await insiders.identify(request),
    async admit(caller, access, target) {
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

type Seen = (target: Target, machine: { id: string; app_name: string }) => boolean;

/** Whether a thing of this scope is the machine's own. */
const SEEN: Partial<Record<Scope, Seen>> = {
  app: ({ app_name }, machine) => app_name === machine.app_name,
  machine: ({ app_name, machine_id }, machine) => machine_id === machine.id && app_name === machine.app_name,
};

export function machineOf(caller: Caller): MachineCaller {
  if (!(caller instanceof MachineCaller)) return fail("unauthorized", "only machines may ask this");
  return caller;
}
