import { fail } from "#core/errors.ts";
import { type Row, route } from "#http/route.ts";
import { actorOf, machineOf, type RouteParts } from "./routing.ts";
import * as schema from "./schema.ts";

const CHANGES = ["lease_held", "lease_lost", "conflict"] as const;

export function metadataRoutes(parts: RouteParts): Row[] {
  const { metadata } = parts;
  const many = (method: "PATCH" | "PUT", summary: string): Row =>
    route(`${method} /v1/apps/:app_name/machines/:machine_id/metadata`, {
      summary,
      part: "machines",
      access: "write machine",
      body: schema.MetadataChange,
      response: { status: 204 },
      errors: [...CHANGES, "version_stale"],
      async handle({ body, ...call }) {
        const { id } = await machineOf(parts, call);
        const pairs = Object.fromEntries(Object.entries(body.metadata).map(([key, value]) => [key, value || null]));
        const { machine_version } = body;
        await metadata.change(id, { pairs, replace: method === "PUT", machine_version }, actorOf(call));
      },
    });
  return [
    route("GET /v1/apps/:app_name/machines/:machine_id/metadata", {
      summary: "A machine's metadata",
      part: "machines",
      access: "read machine",
      response: { status: 200, schema: schema.MetadataMap },
      handle: async (call) => (await machineOf(parts, call)).config.metadata ?? {},
    }),
    many("PATCH", "Set and remove metadata; what is not named stays"),
    many("PUT", "Replace all metadata"),
    route("GET /v1/apps/:app_name/machines/:machine_id/metadata/:key", {
      summary: "One value of a machine's metadata",
      part: "machines",
      access: "read machine",
      response: { status: 200, schema: schema.MetadataValue },
      async handle(call) {
        const pairs = (await machineOf(parts, call)).config.metadata ?? {};
        const { key } = call.params;
        const value = Object.hasOwn(pairs, key) ? pairs[key] : undefined;
        return { value: value ?? fail("not_found", `the machine has no metadata ${JSON.stringify(key)}`) };
      },
    }),
    route("POST /v1/apps/:app_name/machines/:machine_id/metadata/:key", {
      summary: "Set one value of a machine's metadata; no new version, no restart",
      part: "machines",
      access: "write machine",
      body: schema.MetadataValue,
      response: { status: 204 },
      errors: CHANGES,
      async handle({ body, ...call }) {
        const { id } = await machineOf(parts, call);
        await metadata.change(id, { pairs: { [call.params.key]: body.value }, replace: false }, actorOf(call));
      },
    }),
    route("DELETE /v1/apps/:app_name/machines/:machine_id/metadata/:key", {
      summary: "Remove one value of a machine's metadata",
      part: "machines",
      access: "write machine",
      response: { status: 204 },
      errors: CHANGES,
      async handle(call) {
        const { id } = await machineOf(parts, call);
        await metadata.change(id, { pairs: { [call.params.key]: null }, replace: false }, actorOf(call));
      },
    }),
  ];
}
