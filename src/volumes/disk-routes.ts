import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { MANIFESTS, PACKS } from "./backup/names.ts";
import { GIB } from "./disk.ts";
import type { VolumeModule } from "./module.ts";
import * as schema from "./schema.ts";
import type { Volume } from "./types.ts";

/** Operator routes: disk usage of volumes and snapshots, and clean-up of unused data. */
export function diskRoutes({ garbage, parts }: VolumeModule): Row[] {
  return [
    route("GET /v1/platform/disk", {
      summary: "Disk usage of volumes and snapshots, and what the disk supports",
      part: "platform",
      access: "read account",
      pages: inPages("volumes", ["number", "text"]),
      response: { status: 200, schema: schema.DiskResponse },
      handle: async ({ page }) =>
        await diskResponse(parts, (all) => page.of(all, ({ created_at, id }) => [created_at, id])),
    }),
    route("POST /v1/platform/disk/collect", {
      summary: "List or delete unused data",
      part: "platform",
      access: "control account",
      body: schema.CollectInput,
      response: { status: 200, schema: schema.Collected },
      async handle({ body }) {
        const applied = body.apply ?? false;
        const input = { deleted: body.deleted ?? false, unknown: true };
        const waste = applied ? await garbage.collect(input) : await garbage.preview(input);
        return { applied, bytes: waste.reduce((sum, one) => sum + one.bytes, 0), waste };
      },
    }),
  ];
}

async function diskResponse(
  { disk, objects, store, hosts }: VolumeModule["parts"],
  shown: (all: readonly Volume[]) => Volume[],
) {
  const [inventory, packs, manifests, volumes, snapshots] = await Promise.all([
    disk.inventory(),
    objects.list(PACKS),
    objects.list(MANIFESTS),
    store.all(hosts.own),
    store.allSnapshots(),
  ]);
  const stored = [...packs, ...manifests];
  const byVolume = Map.groupBy(snapshots, ({ volume_id }) => volume_id);
  const { encryption, ...capabilities } = await disk.capabilities();
  return {
    driver: disk.name,
    encryption: encryption ?? null,
    ...capabilities,
    total_bytes: inventory.total_bytes,
    free_bytes: inventory.free_bytes,
    objects: { place: objects.place, bytes: stored.reduce((sum, { size }) => sum + size, 0), count: stored.length },
    volumes: shown(volumes).map(({ id, name, app_name, state, size_gb }) => {
      const own = byVolume.get(id) ?? [];
      return {
        id,
        name,
        app: app_name,
        state,
        size_bytes: size_gb * GIB,
        taken_bytes: inventory.volumes.get(id) ?? 0,
        snapshots: own.length,
        snapshot_bytes: own.reduce((sum, one) => sum + one.stored, 0),
      };
    }),
  };
}
