import type { ImageDetails, ImageSummary } from "#machines/runtime/image-source.ts";
import type { NameRecord } from "./names.ts";
import { refuseImage } from "./refusal.ts";
import { layersOf, type Store, shortName } from "./store.ts";

/** A name and its image, for lists. Only the viewer's own machines are included. */
export async function summarize(store: Store, record: NameRecord, viewer: string): Promise<ImageSummary> {
  const { layers, holds } = store;
  const image = await store.load(record.digest);
  const all = image ? layersOf(image) : [];
  const records = all.map(({ diff_id }) => layers.get(diff_id));
  const { digest, owner, source, created_at, used_at } = record;
  return {
    name: shortName(record),
    digest,
    owner,
    source,
    layers: all.length,
    bytes: records.reduce((sum, layer) => sum + (layer?.bytes ?? 0), 0),
    complete: image !== undefined && records.every((layer) => layer !== undefined),
    machines: holds.of(digest, viewer).length,
    created_at,
    used_at,
  };
}

export async function describe(store: Store, record: NameRecord, viewer: string): Promise<ImageDetails> {
  const image = await store.load(record.digest);
  if (!image)
    refuseImage(`${shortName(record)} is damaged: its documents are not here`, { hint: "pull or import it again" });
  const { document } = image;
  return {
    ...(await summarize(store, record, viewer)),
    architecture: document.architecture,
    config: document.config,
    labels: document.labels,
    exposed_ports: document.exposed_ports,
    layer_list: layersOf(image).map(({ diff_id }) => {
      const layer = store.layers.get(diff_id);
      return { diff_id, bytes: layer?.bytes ?? 0, entries: layer?.entries ?? 0, here: layer !== undefined };
    }),
    machine_ids: store.holds.of(record.digest, viewer),
  };
}
