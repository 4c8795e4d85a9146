import type { AppService } from "#apps/service.ts";
import { type Admitted, appOf } from "#http/access.ts";
import { idleFields } from "#http/field-support.ts";
import { type Row, route } from "#http/route.ts";
import { diskRoutes } from "./disk-routes.ts";
import type { VolumeRoom } from "./room.ts";
import * as schema from "./schema.ts";
import { snapshotRoutes } from "./snapshot-routes.ts";
import type { Volume } from "./types.ts";

export function volumeRoutes(room: VolumeRoom, apps: AppService): Row[] {
  return [...listRoutes(room, apps), ...ownRoutes(room), ...snapshotRoutes(room), ...diskRoutes(room)];
}

type Asking = Admitted & { params: { volume_id: string } };
const volumeOf = async ({ volumes }: VolumeRoom, call: Asking): Promise<Volume> =>
  await volumes.get(appOf(call).id, call.params.volume_id);

function listRoutes({ volumes, answers }: VolumeRoom, apps: AppService): Row[] {
  return [
    route("GET /v1/apps/:app_name/volumes", {
      summary: "List an app's volumes",
      part: "volumes",
      access: "read app",
      query: schema.ListQuery,
      answer: { status: 200, schema: schema.VolumeList },
      async handle({ query, ...call }) {
        const found = await volumes.list(appOf(call).id, { include_deleted: query.include_deleted ?? false });
        if (query.summary) return found.map((volume) => answers.changed(volume));
        return await Promise.all(found.map((volume) => answers.read(volume)));
      },
    }),
    route("POST /v1/apps/:app_name/volumes", {
      summary: "Create a volume: empty, from a snapshot, or as a fork",
      description: "One made from a snapshot is answered as `restoring`; read it again to see `created`.",
      part: "volumes",
      access: "create app",
      body: schema.CreateVolume,
      answer: { status: 200, schema: schema.VolumeAnswer },
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
        const wish = { ...body, region: body.region || undefined };
        const made = answers.changed(await volumes.create({ org_id, app_id, app_name }, wish, ids));
        const warnings = [...idleFields(schema.CreateVolume, body, ""), ...volumes.warnings(wish)];
        return warnings.length > 0 ? { ...made, warnings } : made;
      },
    }),
  ];
}

function ownRoutes(room: VolumeRoom): Row[] {
  const { volumes, answers } = room;
  return [
    route("GET /v1/apps/:app_name/volumes/:volume_id", {
      summary: "Get a volume; a deleted one too, as long as it can be taken back",
      part: "volumes",
      access: "read app",
      answer: { status: 200, schema: schema.VolumeAnswer },
      handle: async (call) => await answers.read(await volumeOf(room, call)),
    }),
    route("PUT /v1/apps/:app_name/volumes/:volume_id", {
      summary: "Change whether a volume is kept in daily snapshots, and for how long",
      part: "volumes",
      access: "write app",
      body: schema.UpdateVolume,
      answer: { status: 200, schema: schema.VolumeAnswer },
      errors: ["conflict"],
      async handle({ body, ...call }) {
        const { id } = await volumeOf(room, call);
        return answers.changed(await volumes.update(id, body));
      },
    }),
    route("DELETE /v1/apps/:app_name/volumes/:volume_id", {
      summary: "Delete a volume that no machine mounts; its snapshots stay, and for a while it can be taken back",
      description: "A machine that is being destroyed is no obstacle: the volume's data stay until it is gone.",
      part: "volumes",
      access: "delete app",
      answer: { status: 200, schema: schema.VolumeAnswer },
      errors: ["volume_in_use", "volume_not_ready", "conflict"],
      async handle(call) {
        const { id } = await volumeOf(room, call);
        return answers.changed(await volumes.delete(id));
      },
    }),
    route("PUT /v1/apps/:app_name/volumes/:volume_id/extend", {
      summary: "Make a volume larger; it cannot get smaller",
      part: "volumes",
      access: "write app",
      body: schema.ExtendVolume,
      answer: { status: 200, schema: schema.ExtendAnswer },
      errors: ["volume_not_ready", "conflict"],
      async handle({ body, ids, ...call }) {
        const { id } = await volumeOf(room, call);
        const { volume, needs_restart } = await volumes.extend(id, body.size_gb, ids);
        return { volume: await answers.read(volume), needs_restart };
      },
    }),
    route("POST /v1/apps/:app_name/volumes/:volume_id/undelete", {
      summary: "Take a deleted volume back",
      part: "volumes",
      access: "write app",
      answer: { status: 200, schema: schema.VolumeAnswer },
      errors: ["volume_not_ready", "conflict"],
      async handle(call) {
        const { id } = await volumeOf(room, call);
        return await answers.read(await volumes.undelete(id));
      },
    }),
  ];
}
