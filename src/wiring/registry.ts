/** The platform's own registry, put together: part of platform.ts, on a page of its own. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { AuthStore } from "#auth/store.ts";
import type { Clock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import { scoped } from "#core/objects.ts";
import type { Settings } from "#core/settings.ts";
import { blobHandlers, remoteBlobs } from "#drivers/images/remote-blobs.ts";
import type { CallHandlers, Channel, StreamHandlers } from "#hosts/channel.ts";
import type { HostStore } from "#hosts/store.ts";
import type { ReleaseImages } from "#machines/runtime/image-source.ts";
import type { PushedImages } from "#machines/runtime/pushed-images.ts";
import { BlobBytes } from "#registry/bytes.ts";
import { REGISTRY_LIMITS } from "#registry/limits.ts";
import { pushedImages } from "#registry/pushed-images.ts";
import { type ImageUsers, Registry } from "#registry/service.ts";
import { Uploads } from "#registry/uploads.ts";
import type { DataDir } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { openObjects } from "#stores/objects/open.ts";
import { sqlImportedImages } from "#stores/sql/imported-images.ts";
import { sqlRegistryStore } from "#stores/sql/registry.ts";
import { sqlVolumeStore } from "#stores/sql/volumes.ts";

interface Needs {
  clock: Clock;
  log: Log;
  dir: DataDir;
  authStore: AuthStore;
  releases: ReleaseImages;
  /** The base URL; empty before it is known. */
  facts: { base_url: string };
  /** Channel to other processes. */
  channel: Channel;
  addresses: Pick<HostStore, "channelAddressOf">;
  /** Whether there are no other processes. */
  is_alone: boolean;
}

export interface OpenedRegistry {
  registry: Registry;
  pushed: PushedImages;
  /** What other processes may fetch from here. */
  handlers: { calls: CallHandlers; streams: StreamHandlers };
  close(): Promise<void>;
}

export async function openRegistry(database: Database, settings: Settings, needs: Needs): Promise<OpenedRegistry> {
  const { clock, log, dir, authStore, releases, facts, channel, addresses } = needs;
  const root = dir.file("registry");
  const kept = await openObjects(settings.objects, join(root, "objects"), clock);
  const identity = await sqlVolumeStore(database).identity(randomIds(clock).hex(16));
  const objects = scoped(kept, `registry/${identity}/`);
  const temporary = (): string => join(root, "uploads", `${randomUUID()}.sent`);
  const remote = async (node_id: string) => {
    const address = await addresses.channelAddressOf(node_id);
    return address === undefined ? undefined : remoteBlobs(channel, address);
  };
  const isAlone = needs.is_alone || settings.objects.url !== undefined;
  const bytes = new BlobBytes({ objects, node_id: dir.node_id, temporary, remote: isAlone ? undefined : remote });
  const store = sqlRegistryStore(database);
  const limits = { ...REGISTRY_LIMITS, org_bytes: settings.image_quota_gb * 2 ** 30 };
  const left = async (org_id: string): Promise<number> =>
    limits.org_bytes === 0 ? Infinity : limits.org_bytes - (await store.usedBytes(org_id)) - uploads.bytes(org_id);
  const uploads: Uploads = await Uploads.open({
    dir: join(root, "uploads"),
    clock,
    ids: randomIds(clock),
    limits,
    left,
  });
  const users = imageUsers(database, releases);
  const registry = new Registry({ store, bytes, uploads, clock, limits, users });
  const slugOf = async (id: string): Promise<string | undefined> => (await authStore.findOrgById(id))?.slug;
  const stopping = new AbortController();
  const collecting =
    settings.role === "host" ? Promise.resolve() : keepCollecting(registry, clock, log, stopping.signal);
  return {
    registry,
    pushed: pushedImages({ registry, bytes, slugOf, base_url: () => facts.base_url }),
    handlers: blobHandlers(objects, temporary),
    async close() {
      stopping.abort();
      await collecting;
    },
  };
}

/** Machines and releases that use an image. */
const imageUsers =
  (database: Database, releases: ReleaseImages): ImageUsers =>
  async (digests, org_id) => {
    const machines = await Promise.all(digests.map((digest) => sqlImportedImages(database).users(digest, org_id)));
    const released = (await releases()).filter((one) => one.org_id === org_id && digests.includes(one.digest));
    return [
      ...machines.flat().map((id) => `machine ${id}`),
      ...released.map(({ app_name, version }) => `release ${version} of ${app_name}`),
    ];
  };

async function keepCollecting(registry: Registry, clock: Clock, log: Log, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(registry.limits.collect_ms, signal).catch(() => {});
    if (signal.aborted) return;
    await registry.collect().then(
      (found) => {
        if (found.manifests + found.blobs > 0) log.info(found, "the registry was cleaned up");
      },
      (error: unknown) => log.warn({ error }, "the registry could not be cleaned up"),
    );
  }
}
