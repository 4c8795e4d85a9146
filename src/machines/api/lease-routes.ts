import { appOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { WAIT_STATES } from "../events/wait.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import { actorOf, bad, listOf, machineOf, NONCE_HEADER, parseTime, type RouteParts } from "./routing.ts";
import * as schema from "./schema.ts";

export function leaseRoutes(parts: RouteParts): Row[] {
  const { leases, responses } = parts;
  return [
    route("POST /v1/apps/:app_name/machines/:machine_id/lease", {
      summary: "Acquire a machine's lease, or refresh your own",
      description:
        "While it lasts every change of the machine needs its nonce in `svc-machine-lease-nonce`. With the nonce of the lease itself it is refreshed and keeps its nonce.",
      part: "machines",
      access: "write machine",
      query: schema.LeaseQuery,
      body: schema.LeaseBody,
      response: { status: 201, schema: schema.LeaseResponse },
      errors: ["lease_held", "lease_lost", "conflict"],
      async handle({ query, body, signal, ...call }) {
        const { id } = await machineOf(parts, call);
        const { name: owner, nonce, ids } = actorOf(call);
        const input = {
          owner,
          description: body.description ?? query.description ?? "",
          ttl_s: body.ttl ?? query.ttl ?? MACHINE_LIMITS.lease_default_ttl_s,
          wait_s: query.wait ?? 0,
          nonce,
        };
        const { machine, lease } = await leases.acquire(id, input, ids, signal);
        return responses.lease(machine, lease);
      },
    }),
    route("GET /v1/apps/:app_name/machines/:machine_id/lease", {
      summary: "A machine's lease",
      part: "machines",
      access: "read machine",
      response: { status: 200, schema: schema.LeaseResponse },
      async handle(call) {
        const { id } = await machineOf(parts, call);
        const { machine, lease } = await leases.read(id);
        return responses.lease(machine, lease);
      },
    }),
    route("DELETE /v1/apps/:app_name/machines/:machine_id/lease", {
      summary: "Release a machine's lease",
      part: "machines",
      access: "write machine",
      response: { status: 200, schema: schema.ReleaseResponse },
      errors: ["lease_held", "conflict"],
      async handle(call) {
        const { id } = await machineOf(parts, call);
        const nonce = call.header(NONCE_HEADER) || bad(`header.${NONCE_HEADER}`, "is required");
        await leases.release(id, nonce);
        return { status: "success", data: { ok: true } };
      },
    }),
    waitRoute(parts),
  ];
}

function waitRoute(parts: RouteParts): Row {
  return route("GET /v1/apps/:app_name/machines/:machine_id/wait", {
    summary: "Wait until a machine is in a state",
    part: "machines",
    access: "read machine",
    query: schema.WaitQuery,
    response: { status: 200, schema: schema.WaitResponse },
    errors: ["wait_timeout", "version_conflict"],
    async handle({ query, params, signal, ...call }) {
      const states = listOf(query.state);
      if (states.length === 0) states.push("started");
      const unknown = states.find((state) => !WAIT_STATES.includes(state));
      if (unknown !== undefined)
        bad("query.state", `${JSON.stringify(unknown)} cannot be waited for`, WAIT_STATES.join(", "));
      const instance_id = query.instance_id || query.version || undefined;
      if (states.includes("stopped") && !instance_id) {
        bad("query.instance_id", "is required: instance_id required when waiting for stopped machine");
      }
      const timeout_ms = parseTime(query.timeout, "query.timeout");
      await parts.machines.get(appOf(call).id, params.machine_id);
      const input = {
        states,
        instance_id,
        from_event_id: query.from_event_id || undefined,
        timeout_s: timeout_ms === undefined ? MACHINE_LIMITS.wait_default_s : timeout_ms / 1000,
      };
      return { ok: true, ...(await parts.waits.wait(params.machine_id, input, signal)) };
    },
  });
}
