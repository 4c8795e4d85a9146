/** Writes a root file system as an OCI archive of one layer, with its image config. */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { TAR_END, tarHeader, tarPadding } from "#archive/tar.ts";
import type { BaseRecipe } from "./base-recipes.ts";
import { EPOCH_S } from "./debian-bootstrap.ts";

const MEDIA = "application/vnd.oci.image";
const PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const ARCHITECTURES: Record<string, string> = { x64: "amd64", arm64: "arm64" };

/** Streams the archive. The same file and config give the same bytes. */
export async function ociArchive(layer: string, config: BaseRecipe["config"]): Promise<AsyncIterable<Uint8Array>> {
  const { size } = await stat(layer);
  const diff_id = await digestOf(layer);
  const created = new Date(EPOCH_S * 1000).toISOString();
  const image = bytesOf({
    created,
    architecture: ARCHITECTURES[process.arch] ?? process.arch,
    os: "linux",
    config: { ...config, Env: [PATH, ...(config.Env ?? [])] },
    rootfs: { type: "layers", diff_ids: [diff_id] },
    // Buildah refuses to build on an image with more layers than entries here.
    history: [{ created, created_by: "hangar images base" }],
  });
  const manifest = bytesOf({
    schemaVersion: 2,
    mediaType: `${MEDIA}.manifest.v1+json`,
    config: descriptor(`${MEDIA}.config.v1+json`, image),
    layers: [{ mediaType: `${MEDIA}.layer.v1.tar`, digest: diff_id, size }],
  });
  const index = bytesOf({ schemaVersion: 2, manifests: [descriptor(`${MEDIA}.manifest.v1+json`, manifest)] });
  const files: [path: string, content: Buffer][] = [
    ["oci-layout", bytesOf({ imageLayoutVersion: "1.0.0" })],
    ["index.json", index],
    [blobPath(sha256(manifest)), manifest],
    [blobPath(sha256(image)), image],
  ];
  return pack(files, { path: blobPath(diff_id), file: layer, size });
}

async function* pack(
  files: readonly [string, Buffer][],
  layer: { path: string; file: string; size: number },
): AsyncIterable<Uint8Array> {
  for (const [path, content] of files) {
    yield header(path, content.length);
    yield content;
    yield tarPadding(content.length);
  }
  yield header(layer.path, layer.size);
  yield* createReadStream(layer.file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>;
  yield tarPadding(layer.size);
  yield TAR_END;
}

const header = (path: string, size: number): Buffer =>
  tarHeader({ path, type: "file", size, mode: 0o644, uid: 0, gid: 0, mtime: EPOCH_S });
const bytesOf = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const blobPath = (digest: string): string => `blobs/${digest.replace(":", "/")}`;
const sha256 = (content: Buffer): string => named(createHash("sha256").update(content));
const named = (hash: Hash): string => `sha256:${hash.digest("hex")}`;
const descriptor = (mediaType: string, content: Buffer) => ({
  mediaType,
  digest: sha256(content),
  size: content.length,
});

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 })) hash.update(chunk as Buffer);
  return named(hash);
}
