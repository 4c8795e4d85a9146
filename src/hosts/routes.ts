import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { HostService } from "./service.ts";
import type { Host } from "./types.ts";

const HostAnswer = Type.Object({
  id: Type.String({ description: "Four hex digits." }),
  region: Type.String(),
  zone: Type.String(),
  cpus: Type.Integer({ description: "0 is no bound." }),
  memory_mb: Type.Integer({ description: "0 is no bound." }),
  state: Type.String({ description: "`ok` or `failed`." }),
  used_cpus: Type.Integer(),
  used_memory_mb: Type.Integer(),
});

const Region = Type.Object({
  code: Type.String(),
  name: Type.String(),
  latitude: Type.Number(),
  longitude: Type.Number(),
  gateway_available: Type.Boolean(),
  requires_paid_plan: Type.Boolean(),
  deprecated: Type.Boolean(),
  capacity: Type.Integer({ description: "Smallest machines that still fit; -1 when there is no bound." }),
});

interface Parts {
  hosts: HostService;
  /** What else happens when a host fails or comes back. */
  onState(id: string, state: Host["state"]): Promise<void>;
}

export function hostRoutes({ hosts, onState }: Parts): Row[] {
  const setState = (verb: "fail" | "recover", state: Host["state"], summary: string): Row =>
    route(`POST /v1/platform/hosts/:host_id/${verb}`, {
      summary,
      part: "platform",
      access: "control account",
      answer: { status: 200, schema: Type.Object({ ok: Type.Boolean() }) },
      async handle({ params }) {
        await hosts.setState(params.host_id, state);
        await onState(params.host_id, state);
        return { ok: true };
      },
    });
  return [
    route("GET /v1/platform/regions", {
      summary: "Where machines can run",
      part: "platform",
      access: "any",
      answer: { status: 200, schema: Type.Object({ nearest: Type.String(), regions: Type.Array(Region) }) },
      async handle() {
        const byRegion = Map.groupBy(await hosts.hosts(), (host) => host.region);
        return { nearest: hosts.default_region, regions: [...byRegion].map(([code, own]) => regionAnswer(code, own)) };
      },
    }),
    route("GET /v1/platform/hosts", {
      summary: "The hosts, their size and what is taken",
      part: "platform",
      access: "read account",
      answer: { status: 200, schema: Type.Object({ hosts: Type.Array(HostAnswer) }) },
      handle: async () => ({ hosts: await hosts.hosts() }),
    }),
    setState(
      "fail",
      "failed",
      "Take a host for failed: its machines are marked, and those that stand by for them start",
    ),
    setState("recover", "ok", "Take a failed host back"),
  ];
}

function regionAnswer(code: string, hosts: readonly Host[]) {
  const capacity = hosts.map(({ state, cpus, memory_mb, used_cpus, used_memory_mb }) => {
    if (state === "failed") return 0;
    const byCpu = cpus === 0 ? Number.POSITIVE_INFINITY : cpus - used_cpus;
    const byMemory = memory_mb === 0 ? Number.POSITIVE_INFINITY : Math.floor((memory_mb - used_memory_mb) / 256);
    return Math.max(0, Math.min(byCpu, byMemory));
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
