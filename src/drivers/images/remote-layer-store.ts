/** The layer store of another process, over the channel between the platform's processes, and its server side. */
import type { CallHandlers, Channel, StreamHandlers } from "#hosts/channel.ts";
import { isDigest } from "#machines/runtime/images.ts";
import { fileSender, receiveFile } from "./file-stream.ts";
import type { LayerStoreReader, Unneeded } from "./layer-store.ts";
import { refuseImage } from "./refusal.ts";

/** A request for a document or a layer. */
interface BlobRequest {
  digest: string;
}

export function remoteLayerStore(channel: Channel, address: string): LayerStoreReader {
  return {
    async document(digest) {
      const found = await channel.call(address, "imageDocument", { digest } satisfies BlobRequest);
      return typeof found === "string" ? Buffer.from(found, "base64") : undefined;
    },
    layer: (diff_id, file, signal) =>
      receiveFile(
        channel,
        { address, name: "imageLayer", body: { digest: diff_id } satisfies BlobRequest },
        file,
        signal,
      ),
    async remove(digests) {
      await channel.call(address, "imageRemove", digests);
    },
  };
}

const digestIn = (body: unknown): string => {
  const { digest } = body as BlobRequest;
  return isDigest(digest) ? digest : refuseImage(`${JSON.stringify(digest)} is not a digest`);
};

export function layerStoreCalls(layer_store: LayerStoreReader): CallHandlers {
  return {
    imageDocument: async (body) => (await layer_store.document(digestIn(body)))?.toString("base64") ?? null,
    imageRemove: async (body) => {
      const { documents, layers } = body as Unneeded;
      const all = (digests: readonly string[]): string[] => digests.map((digest) => digestIn({ digest }));
      await layer_store.remove({ documents: all(documents), layers: all(layers) });
    },
  };
}

export const layerStoreStreams = (layer_store: LayerStoreReader, temporary: () => string): StreamHandlers => ({
  imageLayer: fileSender((body, file, signal) => layer_store.layer(digestIn(body), file, signal), temporary),
});
