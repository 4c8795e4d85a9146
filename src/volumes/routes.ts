import type { AppService } from "#apps/service.ts";
import { type Admitted, appOf } from "#http/access.ts";
import { idleFields } from "#http/field-support.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { diskRoutes } from "./disk-routes.ts";
import type { VolumeModule } from "./module.ts";
import * as schema from "./schema.ts";
import { snapshotRoutes } from "./snapshot-routes.ts";
import type { Volume } from "./types.ts";

export function volumeRoutes(module: VolumeModule, apps: AppService): Row[] {
  return [...listRoutes(module, apps), ...ownRoutes(module), ...snapshotRoutes(module), ...diskRoutes(module)];
}

type RouteCall = Admitted & { params: { volume_id: string } };
const volumeOf = async ({ volumes }: VolumeModule, call: RouteCall): Promise<Volume> =>
  await volumes.get(appOf(call).id, call.params.volume_id);

function listRoutes({ volumes, responses }: VolumeModule, apps: AppService): Row[] {
  return [
    route("GET /v1/apps/:app_name/volumes", {
      summary: "List an app's volumes",
      part: "volumes",
      access: "read app",
      query: schema.ListQuery,
      pages: inPages("", ["number", "text"]),
      response: { status: 200, schema: schema.VolumeList },
      async handle({ query, page, ...call }) {
        const { include_deleted = false, summary } = query;
        const found = await volumes.list(appOf(call).id, { include_deleted, page: page.request });
        const list = page.take(found, ({ created_at, id }) => [created_at, id]);
        if (summary) return list.map((volume) => responses.changed(volume));
        return await Promise.all(list.map((volume) => responses.read(volume)));
      },
    }),
    route("POST /v1/apps/:app_name/volumes", {
      summary: "Create a volume: empty, from a snapshot, or as a fork",
      description: "One made from a snapshot is answered as `restoring`; read it again to see `created`.",
      part: "volumes",
      access: "create app",
      body: schema.CreateVolume,
      response: { status: 200, schema: schema.VolumeResponse },
      errors: [
        "limit_reached",
        "insufficient_capacity",
        "volume_placement_capacity",
        "volume_not_ready",
        "encryption_unavailable",
        "conflict",
      ],
      async handle({ body, params, ids }) {
        const { id: app_id, name: app_name, org_id } = await apps.get(params.app_name);
        const input = { ...body, region: body.region || undefined };
        const made = responses.changed(await volumes.create({ org_id, app_id, app_name }, input, ids));
        const warnings = [...idleFields(schema.CreateVolume, body, ""), ...volumes.warnings(input)];
        return warnings.length > 0 ? { ...made, warnings } : made;
      },
    }),
  ];
}

function ownRoutes(module: VolumeModule): Row[] {
  const { volumes, responses } = module;
  return [
    route("GET /v1/apps/:app_name/volumes/:volume_id", {
      summary: "Get a volume; also a deleted one while it can be restored",
      part: "volumes",
      access: "read app",
      response: { status: 200, schema: schema.VolumeResponse },
      handle: async (call) => await responses.read(await volumeOf(module, call)),
    }),
    route("PUT /v1/apps/:app_name/volumes/:volume_id", {
      summary: "Change a volume's daily snapshots and their retention",
      part: "volumes",
      access: "write app",
      body: schema.UpdateVolume,
      response: { status: 200, schema: schema.VolumeResponse },
      errors: ["conflict"],
      async handle({ body, ...call }) {
        const { id } = await volumeOf(module, call);
        return responses.changed(await volumes.update(id, body));
      },
    }),
    route("DELETE /v1/apps/:app_name/volumes/:volume_id", {
      summary: "Delete an unattached volume; its snapshots stay, and it can be restored for a while",
      description: "Allowed while its machine is being destroyed: the data stays until the machine is gone.",
      part: "volumes",
      access: "delete app",
      response: { status: 200, schema: schema.VolumeResponse },
      errors: ["volume_in_use", "volume_not_ready", "conflict"],
      async handle(call) {
        const { id } = await volumeOf(module, call);
        return responses.changed(await volumes.delete(id));
      },
    }),
    route("PUT /v1/apps/:app_name/volumes/:volume_id/extend", {
      summary: "Extend a volume; it cannot shrink",
      part: "volumes",
      access: "write app",
      body: schema.ExtendVolume,
      response: { status: 200, schema: schema.ExtendResponse },
      errors: ["volume_not_ready", "conflict"],
      async handle({ body, ids, ...call }) {
        const { id } = await volumeOf(module, call);
        const { volume, needs_restart } = await volumes.extend(id, body.size_gb, ids);
        return { volume: await responses.read(volume), needs_restart };
      },
    }),
    route("POST /v1/apps/:app_name/volumes/:volume_id/undelete", {
      summary: "Restore a deleted volume",
      part: "volumes",
      access: "write app",
      response: { status: 200, schema: schema.VolumeResponse },
      errors: ["volume_not_ready", "conflict"],
      async handle(call) {
        const { id } = await volumeOf(module, call);
        return await responses.read(await volumes.undelete(id));
      },
    }),
  ];
}
