import { type Admitted, appOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import type { VolumeModule } from "./module.ts";
import * as schema from "./schema.ts";

export function snapshotRoutes({ volumes, snapshots, responses }: VolumeModule): Row[] {
  const snapshotOf = async (call: Admitted & { params: { volume_id: string; snapshot_id: string } }) =>
    await snapshots.get(appOf(call).id, call.params.volume_id, call.params.snapshot_id);
  return [
    route("GET /v1/apps/:app_name/volumes/:volume_id/snapshots", {
      summary: "List a volume's snapshots, newest first; those of a deleted volume until they expire",
      part: "volumes",
      access: "read app",
      pages: inPages("", ["number", "text"]),
      response: { status: 200, schema: schema.SnapshotList },
      async handle({ params, page, ...call }) {
        const found = await snapshots.list(appOf(call).id, params.volume_id);
        const stored = found.filter(({ status }) => status === "created");
        const list = page.of(stored, ({ created_at, id }) => [created_at, id], "descending");
        return list.map((one) => responses.snapshot(one));
      },
    }),
    route("POST /v1/apps/:app_name/volumes/:volume_id/snapshots", {
      summary: "Take a snapshot now; it is listed when it is stored",
      part: "volumes",
      access: "write app",
      response: { status: 200, schema: schema.SnapshotRecord },
      errors: ["limit_reached", "volume_not_ready", "overloaded", "conflict"],
      async handle({ params, ids, ...call }) {
        const { id } = await volumes.get(appOf(call).id, params.volume_id);
        return { Msg: { backup: responses.record(await snapshots.create(id, ids)) } };
      },
    }),
    route("GET /v1/apps/:app_name/volumes/:volume_id/snapshots/:snapshot_id", {
      summary: "Get a snapshot, also while it is being stored, or why that failed",
      part: "volumes",
      access: "read app",
      response: { status: 200, schema: schema.SnapshotResponse },
      handle: async (call) => responses.snapshot(await snapshotOf(call)),
    }),
    route("DELETE /v1/apps/:app_name/volumes/:volume_id/snapshots/:snapshot_id", {
      summary: "Delete a snapshot before it expires",
      part: "volumes",
      access: "delete app",
      response: { status: 200, schema: schema.Ok },
      errors: ["volume_not_ready", "conflict"],
      async handle(call) {
        await snapshots.delete(await snapshotOf(call));
        return { ok: true };
      },
    }),
  ];
}
