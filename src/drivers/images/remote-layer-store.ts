/** The shelf of another process, over the way between the platform's processes, and the end that hands things out. */
import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import { fail } from "#core/errors.ts";
import type { CallHandlers, Channel, StreamHandlers } from "#hosts/channel.ts";
import { isDigest } from "#machines/runtime/images.ts";
import type { LayerStoreReader, Unneeded } from "./layer-store.ts";
import { refuseImage } from "./refusal.ts";

/** What can be asked for. */
interface BlobRequest {
  digest: string;
}

export function remoteLayerStore(channel: Channel, address: string): LayerStoreReader {
  return {
    async document(digest) {
      const found = await channel.call(address, "imageDocument", { digest } satisfies BlobRequest);
      return typeof found === "string" ? Buffer.from(found, "base64") : undefined;
    },
    async layer(diff_id, file, signal) {
      const line = await channel.stream(address, "imageLayer", { digest: diff_id } satisfies BlobRequest, signal);
      const handle = await open(file, "wx", 0o600);
      let bytes = 0;
      let told: number | undefined;
      try {
        for await (const message of line.messages()) {
          if (typeof message === "string") told = (JSON.parse(message) as { bytes: number }).bytes;
          else {
            await handle.writeFile(message);
            bytes += message.length;
          }
        }
      } finally {
        await handle.close();
        if (told === undefined || told !== bytes) await rm(file, { force: true });
      }
      if (told === bytes) return bytes > 0;
      fail("host_unreachable", `the connection to ${address} broke off after ${bytes} bytes of a layer`);
    },
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

/** A layer, piece by piece, and how much it was; nothing of nothing when it is not here. */
export function layerStoreStreams(layer_store: LayerStoreReader, temporary: () => string): StreamHandlers {
  return {
    imageLayer: async (body, signal) => {
      const file = temporary();
      const found = await layer_store.layer(digestIn(body), file, signal);
      return async (line) => {
        try {
          let bytes = 0;
          for await (const piece of found ? createReadStream(file) : []) {
            if (line.signal.aborted) return;
            await line.send(piece as Buffer);
            bytes += (piece as Buffer).length;
          }
          await line.send(JSON.stringify({ bytes }));
          line.end(1000, "that is all");
        } finally {
          await rm(file, { force: true });
        }
      };
    },
  };
}
