/** The bytes of pushed blobs in another process of the platform, when the processes share no object store. */
import { assert } from "#core/assert.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { CallHandlers, Channel, StreamHandlers } from "#hosts/channel.ts";
import type { RemoteBytes } from "#registry/bytes.ts";
import { fileSender, receiveFile } from "./file-stream.ts";

interface KeyRequest {
  key: string;
}

export const remoteBlobs = (channel: Channel, address: string): RemoteBytes => ({
  fetch: (key, file, signal) =>
    receiveFile(channel, { address, name: "registryBlob", body: { key } satisfies KeyRequest }, file, signal),
  async remove(keys) {
    await channel.call(address, "registryRemove", { keys });
  },
});

/** What other processes may fetch from here. */
export const blobHandlers = (
  objects: ObjectStore,
  temporary: () => string,
): { calls: CallHandlers; streams: StreamHandlers } => ({
  calls: {
    registryRemove: async (body) => {
      await objects.delete((body as { keys: string[] }).keys.map((key) => blobKey({ key })));
    },
  },
  streams: {
    registryBlob: fileSender(async (body, file) => await objects.getFile(blobKey(body), file), temporary),
  },
});

function blobKey(body: unknown): string {
  const { key } = body as KeyRequest;
  assert(/^blobs\/sha\d+-[0-9a-f]+\/\d+-[0-9a-f]+$/.test(key), "a key of a blob");
  return key;
}
