import { isoTime } from "#core/clock.ts";
import type { Ids } from "#core/ids.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { free, type HostService } from "./service.ts";
import type { Host } from "./types.ts";

const HostResponse = Type.Object({
  id: Type.String({ description: "Four hex digits." }),
  region: Type.String(),
  zone: Type.String(),
  cpus: Type.Integer({ description: "0: unlimited." }),
  memory_mb: Type.Integer({ description: "0: unlimited." }),
  state: Type.String({
    description:
      "`ok`; `unknown` without a recent heartbeat: machines that another host may start are frozen there, or its box is down; `failed` when its lease has ended, or an operator said so.",
  }),
  used_cpus: Type.Integer(),
  used_memory_mb: Type.Integer(),
  cordoned: Type.Boolean({ description: "No new machines are placed there." }),
  draining: Type.Boolean({ description: "Its machines move elsewhere as capacity permits." }),
  held: Type.Boolean({ description: "Held by an operator: it does not return by itself." }),
  lease_seconds: Type.Integer({
    description: "Lease duration in seconds: without a renewal the host counts as lost; 0: never.",
  }),
  lease_ends_at: Type.String({
    description: "When it counts as lost unless it renews its lease, and can be removed; empty after that.",
  }),
  address: Type.String({ description: "Where other processes reach it; empty when it does not listen." }),
  driver: Type.String(),
  builds: Type.String({ description: "`yes` when it can build images, or why not; empty when it has not said." }),
  version: Type.String(),
  last_seen: Type.String({ description: "By its own clock; empty for a host without a lease." }),
});

const Region = Type.Object({
  code: Type.String(),
  name: Type.String(),
  latitude: Type.Number(),
  longitude: Type.Number(),
  gateway_available: Type.Boolean(),
  requires_paid_plan: Type.Boolean(),
  deprecated: Type.Boolean(),
  capacity: Type.Integer({ description: "Smallest machines that still fit; -1: unlimited." }),
});

const Done = Type.Object({ ok: Type.Boolean() });
const Drained = Type.Object({
  moving: Type.Array(Type.String(), { description: "Machines that move elsewhere." }),
  stuck: Type.Array(Type.Object({ id: Type.String(), reason: Type.String() })),
});
const JoinTokenResponse = Type.Object({
  token: Type.String({ description: "For one new host; shown only once." }),
  expires_at: Type.String(),
});

export interface HostRouteParts {
  hosts: HostService;
  /** Called when a host fails or returns. */
  onState(id: string, state: Host["state"]): Promise<void>;
  drain(id: string, caller: string, ids: Ids): Promise<{ moving: string[]; stuck: { id: string; reason: string }[] }>;
  joinToken(ids: Ids): Promise<{ token: string; expires_at: number }>;
}

export function hostRoutes(parts: HostRouteParts): Row[] {
  const { hosts } = parts;
  return [
    route("GET /v1/platform/regions", {
      summary: "List regions",
      part: "platform",
      access: "any",
      pages: inPages("regions", ["text"]),
      response: { status: 200, schema: Type.Object({ nearest: Type.String(), regions: Type.Array(Region) }) },
      async handle({ page }) {
        const byRegion = Map.groupBy(await hosts.hosts(), (host) => host.region);
        const regions = page.of([...byRegion], ([code]) => [code]);
        return { nearest: hosts.default_region, regions: regions.map(([code, own]) => regionResponse(code, own)) };
      },
    }),
    route("GET /v1/platform/hosts", {
      summary: "Hosts, their size and usage",
      part: "platform",
      access: "read account",
      pages: inPages("hosts", ["text"]),
      response: { status: 200, schema: Type.Object({ hosts: Type.Array(HostResponse) }) },
      async handle({ page }) {
        const list = page.of(await hosts.hosts(), ({ id }) => [id]);
        return { hosts: list.map((host) => hostResponse(host, hosts)) };
      },
    }),
    route("GET /v1/platform/hosts/:host_id", {
      summary: "One host",
      part: "platform",
      access: "read account",
      response: { status: 200, schema: HostResponse },
      handle: async ({ params }) => hostResponse(await hosts.find(params.host_id), hosts),
    }),
    route("DELETE /v1/platform/hosts/:host_id", {
      summary: "Delete a host without machines whose lease has ended",
      description: "While the lease runs it is 409, with the time at which it ends in `lease_ends_at`.",
      part: "platform",
      access: "control account",
      response: { status: 200, schema: Done },
      errors: ["conflict"],
      async handle({ params }) {
        await hosts.forget(params.host_id);
        return { ok: true };
      },
    }),
    ...operatorRoutes(parts),
  ];
}

function operatorRoutes({ hosts, onState, drain, joinToken }: HostRouteParts): Row[] {
  const act = (verb: string, summary: string, work: (id: string) => Promise<void>): Row =>
    route(`POST /v1/platform/hosts/:host_id/${verb}`, {
      summary,
      part: "platform",
      access: "control account",
      response: { status: 200, schema: Done },
      async handle({ params }) {
        await work(params.host_id);
        return { ok: true };
      },
    });
  const setState = async (id: string, state: Host["state"]): Promise<void> => {
    await hosts.setState(id, state);
    await onState(id, state);
  };
  return [
    act("fail", "Take a host for failed: its machines are marked, and those that stand by for them start", (id) =>
      setState(id, "failed"),
    ),
    act("recover", "Take a failed host back", (id) => setState(id, "ok")),
    act("cordon", "Mark a host unschedulable; its machines stay", (id) => hosts.setCordoned(id, true)),
    act("uncordon", "Place machines on a host again", (id) => hosts.setCordoned(id, false)),
    route("POST /v1/platform/hosts/:host_id/drain", {
      summary: "Cordon a host and move its machines elsewhere; those that cannot yet are listed with the reason",
      description: "They are retried until the host is empty or uncordoned.",
      part: "platform",
      access: "control account",
      response: { status: 200, schema: Drained },
      handle: async ({ params, caller, ids }) => await drain(params.host_id, caller.name, ids),
    }),
    route("POST /v1/platform/host_join_tokens", {
      summary: "Create a join token for one new host",
      part: "platform",
      access: "control account",
      credential: true,
      response: { status: 200, schema: JoinTokenResponse },
      async handle({ ids }) {
        const { token, expires_at } = await joinToken(ids);
        return { token, expires_at: isoTime(expires_at) };
      },
    }),
  ];
}

function hostResponse(host: Host, hosts: Pick<HostService, "isSilent" | "leaseEndsAt">) {
  const state = host.state === "ok" && hosts.isSilent(host.id) ? "unknown" : host.state;
  const ends_at = hosts.leaseEndsAt(host.id);
  const { id, region, zone, cpus, memory_mb, used_cpus, used_memory_mb, cordoned, draining, held } = host;
  const { address, facts } = host;
  const { driver = "", builds = "", version = "" } = facts;
  const wishes = { cordoned, draining, held };
  const last_seen = host.lease_ms > 0 ? isoTime(host.seen_at) : "";
  const size = { cpus, memory_mb, used_cpus, used_memory_mb };
  const lease = {
    lease_seconds: Math.round(host.lease_ms / 1000),
    lease_ends_at: ends_at === undefined ? "" : isoTime(ends_at),
  };
  return { id, region, zone, ...size, state, ...wishes, ...lease, address, driver, builds, version, last_seen };
}

/** The smallest machine, with one CPU. */
const SMALLEST_MB = 256;

function regionResponse(code: string, hosts: readonly Host[]) {
  const capacity = hosts.map((host) => {
    if (host.state === "failed" || host.cordoned) return 0;
    const { cpus, memory_mb } = free(host);
    return Math.max(0, Math.min(cpus, Math.floor(memory_mb / SMALLEST_MB)));
  });
  const total = capacity.reduce((sum, one) => sum + one, 0);
  return {
    code,
    name: code,
    latitude: 0,
    longitude: 0,
    gateway_available: false,
    requires_paid_plan: false,
    deprecated: false,
    capacity: Number.isFinite(total) ? total : -1,
  };
}
