/** Images of one process among several, put together: part of platform.ts, on a page of its own. */
import type { Clock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import { scoped } from "#core/objects.ts";
import type { Settings } from "#core/settings.ts";
import { type Images, openImages } from "#drivers/images/images.ts";
import { remoteLayerStore } from "#drivers/images/remote-layer-store.ts";
import type { Channel } from "#hosts/channel.ts";
import type { HostStore } from "#hosts/store.ts";
import type { ReleaseImages } from "#machines/runtime/image-source.ts";
import type { PushedImages } from "#machines/runtime/pushed-images.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { openObjects } from "#stores/objects/open.ts";
import { sqlImportedImages } from "#stores/sql/imported-images.ts";
import { sqlVolumeStore } from "#stores/sql/volumes.ts";

interface Among {
  clock: Clock;
  log: Log;
  dir: DataDir;
  channel: Channel;
  addresses: Pick<HostStore, "channelAddressOf">;
  releases: ReleaseImages;
  pushed: PushedImages;
}

/** Imported images are in the object store if there is one, else on the importing host. */
export async function sharedImages(
  database: Database,
  settings: Settings,
  { clock, log, dir, channel, addresses, releases, pushed }: Among,
): Promise<Images> {
  const kept = await openObjects(settings.objects, dir.file("imported"), clock);
  const identity = await sqlVolumeStore(database).identity(randomIds(clock).hex(16));
  const remote = async (node_id: string) => {
    const address = await addresses.channelAddressOf(node_id);
    return address === undefined ? undefined : { address, layer_store: remoteLayerStore(channel, address) };
  };
  const sharing = {
    names: sqlImportedImages(database),
    node_id: dir.node_id,
    objects: scoped(kept, `images/${identity}/`),
    ...(settings.objects.url === undefined ? { remote } : {}),
  };
  return await openImages(dir.file("images"), settings, clock, log, { sharing, releases, pushed });
}
