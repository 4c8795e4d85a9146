/**
 * Reads an uploaded archive as an image: an OCI layout or a docker archive as it is, and any other tar as the whole
 * root file system of a machine.
 */
import { type FileHandle, open } from "node:fs/promises";
import { posix } from "node:path";
import type { ImagePart, ImageParts } from "#machines/runtime/image-source.ts";
import { digestOf } from "./blobs.ts";
import {
  ARCHITECTURE,
  choosePlatform,
  type Descriptor,
  isIndex,
  MEDIA,
  parseDocument,
  readConfig,
  readIndex,
  readManifest,
} from "./documents.ts";
import type { Packed } from "./layer-store.ts";
import type { ImageLimits } from "./limits.ts";
import type { Reference } from "./reference.ts";
import { LayerFault, refuseImage } from "./refusal.ts";
import { type TarEntry, TarReader } from "./tar.ts";

/** An uncompressed tar on disk. */
export interface PlainTar {
  file: string;
  bytes: number;
  sha256: string;
}

interface Placed {
  start: number;
  length: number;
  link: string | undefined;
}

/** Top-level names of an OCI layout or of `docker save`. */
const OF_AN_ARCHIVE =
  /^(oci-layout|index\.json|manifest\.json|repositories|blobs(\/.*)?|[0-9a-f]{64}(\.json|\.tar|\/.*)?)$/;

export async function readArchive(tar: PlainTar, reference: Reference, limits: ImageLimits): Promise<Packed> {
  const handle = await open(tar.file, "r");
  try {
    const archive = new Archive(tar.file, handle, await contents(handle, tar.bytes, limits), limits);
    if (archive.has("oci-layout") && archive.has("index.json")) return await ociImage(archive, reference, limits);
    if (archive.has("manifest.json")) return await dockerImage(archive, reference, limits);
    return rootfsImage(tar);
  } catch (thrown) {
    if (thrown instanceof LayerFault) refuseImage(`what was sent cannot be read: ${thrown.message}`);
    throw thrown;
  } finally {
    await handle.close();
  }
}

class Archive {
  readonly file: string;
  readonly #handle: FileHandle;
  readonly #files: ReadonlyMap<string, Placed>;
  readonly #limits: ImageLimits;

  constructor(file: string, handle: FileHandle, files: ReadonlyMap<string, Placed>, limits: ImageLimits) {
    this.file = file;
    this.#handle = handle;
    this.#files = files;
    this.#limits = limits;
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  /** Where a file is. Old docker archives store a layer once, with links to it. */
  place(path: string): Placed {
    const found = this.#files.get(path);
    const placed = found?.link === undefined ? found : this.#files.get(posix.join(posix.dirname(path), found.link));
    if (!placed || placed.link !== undefined)
      refuseImage(`the archive has no file ${JSON.stringify(path.slice(0, 120))}`);
    return placed;
  }

  async read(path: string): Promise<Buffer> {
    const { start, length } = this.place(path);
    if (length > this.#limits.document_bytes) refuseImage(`${path} has ${length} bytes (limit document_bytes)`);
    const buffer = Buffer.alloc(length);
    await this.#handle.read(buffer, 0, length, start);
    return buffer;
  }

  /** A blob of an OCI layout, whose size and digest are verified. */
  async blob({ digest, size }: Descriptor, what: string): Promise<Buffer> {
    const bytes = await this.read(blobPath(digest));
    checkSize(what, digest, size, bytes.length);
    checkDigest(what, digest, digestOf(bytes));
    return bytes;
  }
}

function checkSize(what: string, digest: string, wanted: number, found: number): void {
  if (wanted !== found) refuseImage(`${what} ${digest} is to have ${wanted} bytes, and has ${found} in the archive`);
}

function checkDigest(what: string, wanted: string, found: string): void {
  if (wanted !== found) refuseImage(`${what} is to have the digest ${wanted}, and its bytes have ${found}`);
}

const blobPath = (digest: string): string => `blobs/${digest.replace(":", "/")}`;

/** Positions of the files of an archive; nothing once a name shows that it is a root file system. */
async function contents(handle: FileHandle, bytes: number, limits: ImageLimits): Promise<Map<string, Placed>> {
  const files = new Map<string, Placed>();
  for await (const { entry, start } of entriesOf(handle, bytes, limits)) {
    const path = posix.normalize(entry.path).replace(/\/$/, "");
    if (path !== "." && !OF_AN_ARCHIVE.test(path)) return new Map();
    const link = entry.type === "symlink" ? entry.link : undefined;
    if (entry.type === "file" || link) files.set(path, { start, length: entry.size, link });
    if (files.size > limits.archive_entries)
      refuseImage(`the archive has more than ${limits.archive_entries} files (limit archive_entries)`);
  }
  return files;
}

/** The entries of a tar and the positions of their content, which is not read. */
async function* entriesOf(
  handle: FileHandle,
  bytes: number,
  limits: ImageLimits,
): AsyncGenerator<{ entry: TarEntry; start: number }> {
  const found: TarEntry[] = [];
  const reader = new TarReader({ entry: (entry) => found.push(entry), data: () => {} }, limits);
  const block = Buffer.alloc(512);
  let at = 0;
  while (at < bytes) {
    const { bytesRead } = await handle.read(block, 0, block.length, at);
    if (bytesRead === 0) return;
    reader.write(block.subarray(0, bytesRead));
    at += bytesRead;
    for (const entry of found.splice(0)) yield { entry, start: at };
    const jump = reader.skippable;
    reader.skip(jump);
    at += jump;
  }
  if (at > bytes) throw new LayerFault("the archive is cut short");
  reader.end();
}

async function ociImage(archive: Archive, reference: Reference, limits: ImageLimits): Promise<Packed> {
  const manifests = readIndex(parseDocument(await archive.read("index.json"), "index.json"), "index.json");
  const documents: Buffer[] = [];
  let document = await archive.blob(chooseNamed(manifests, reference), "the manifest");
  documents.push(document);
  if (isIndex(parseDocument(document, "the index"))) {
    const inner = readIndex(parseDocument(document, "the index"), "the index");
    document = await archive.blob(choosePlatform(inner, "the archive"), "the manifest");
    documents.push(document);
  }
  const manifest = readManifest(parseDocument(document, "the manifest"), limits);
  const config = await archive.blob(manifest.config, "the config");
  const { diff_ids } = readConfig(parseDocument(config, "the config"), manifest.layers.length);
  const layers = manifest.layers.map(({ digest, size }, i) => {
    const { start, length } = archive.place(blobPath(digest));
    checkSize("layer", digest, size, length);
    return { file: archive.file, start, length, digest, diff_id: diff_ids[i] ?? "", claimed: true };
  });
  return { documents: [...documents, config], layers };
}

/** Among several images, the one with the tag; among several platforms, ours. */
function chooseNamed(manifests: readonly Descriptor[], { tag, name }: Reference): Descriptor {
  const [only] = manifests;
  if (manifests.length === 1 && only) return only;
  const named = manifests.filter(({ ref_name }) => ref_name !== undefined && (ref_name === tag || ref_name === name));
  if (named.length === 1 && named[0]) return named[0];
  const others = new Set(manifests.flatMap(({ ref_name }) => ref_name ?? []));
  if (others.size > 1)
    refuseImage(
      `the archive has several images (${[...others].slice(0, 10).join(", ")}) and none is called ${JSON.stringify(tag)}`,
      {
        hint: "import it under the tag of the one you want",
      },
    );
  return choosePlatform(named.length > 0 ? named : manifests, "the archive");
}

async function dockerImage(archive: Archive, reference: Reference, limits: ImageLimits): Promise<Packed> {
  const list = parseList(await archive.read("manifest.json"));
  const images = list as { Config?: unknown; Layers?: unknown; RepoTags?: unknown }[];
  const tagged = images.filter(
    ({ RepoTags }) => Array.isArray(RepoTags) && RepoTags.some((tag) => isCalled(String(tag), reference)),
  );
  const image = images.length === 1 ? images[0] : tagged[0];
  if (!image) refuseImage(`the archive has ${images.length} images and none is called ${reference.given}`);
  const paths = Array.isArray(image.Layers) ? image.Layers.map(String) : [];
  const config = await archive.read(String(image.Config));
  const named = NAMED_BY_HASH.exec(String(image.Config))?.[1];
  if (named !== undefined) checkDigest("the config", `sha256:${named}`, digestOf(config));
  const { diff_ids } = readConfig(parseDocument(config, "the config"), paths.length);
  const layers = paths.map((path, i) => {
    const { start, length } = archive.place(posix.normalize(path));
    return { file: archive.file, start, length, diff_id: diff_ids[i] ?? "", claimed: true };
  });
  const manifest = plainManifest(config, layers);
  readManifest(parseDocument(manifest, "the manifest"), limits);
  return { documents: [manifest, config], layers };
}

/** docker, podman and skopeo name the config by its hash. */
const NAMED_BY_HASH = /^(?:blobs\/sha256\/)?([0-9a-f]{64})(?:\.json)?$/;

function parseList(bytes: Buffer): unknown[] {
  try {
    const value = JSON.parse(bytes.toString()) as unknown;
    if (Array.isArray(value)) return value.filter((one) => one !== null && typeof one === "object");
  } catch {
    // Reported below.
  }
  refuseImage("manifest.json of the archive is not a list");
}

const isCalled = (tag: string, { name, given }: Reference): boolean => tag === given || name.endsWith(`/${tag}`);

/** A root file system becomes an image of one layer without a command; the machine's config names one. */
function rootfsImage(tar: PlainTar): Packed {
  return layerImage(tar, {});
}

/** An image of one layer. */
export function layerImage({ file, sha256, bytes }: PlainTar, own: Record<string, unknown>): Packed {
  const layers = [{ file, diff_id: sha256, start: 0, length: bytes }];
  const config = configDocument([sha256], own);
  return { documents: [plainManifest(config, layers), config], layers };
}

export function assembled({ config, layers }: ImageParts, limits: ImageLimits): Packed {
  const manifest = manifestOf(config, layers);
  readManifest(parseDocument(manifest, "the manifest"), limits);
  return {
    documents: [manifest, config],
    layers: layers.map(({ diff_id, digest, size, file, claimed }) => {
      const packed = { diff_id, digest, start: 0, length: size };
      return { ...packed, ...(file === undefined ? {} : { file }), ...(claimed ? { claimed } : {}) };
    }),
  };
}

/** A minimal image config. It is deterministic, so the same image has one digest. */
export function configDocument(diff_ids: readonly string[], config: Record<string, unknown>): Buffer {
  return Buffer.from(
    JSON.stringify({ architecture: ARCHITECTURE, os: "linux", config, rootfs: { type: "layers", diff_ids } }),
  );
}

/** Of layers that are not compressed. */
const plainManifest = (config: Buffer, layers: readonly { diff_id: string; length: number }[]): Buffer =>
  manifestOf(
    config,
    layers.map(({ diff_id, length }) => ({ media_type: MEDIA.layer, digest: diff_id, size: length })),
  );

function manifestOf(config: Buffer, layers: readonly Pick<ImagePart, "media_type" | "digest" | "size">[]): Buffer {
  return Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MEDIA.manifest,
      config: { mediaType: MEDIA.config, digest: digestOf(config), size: config.length },
      layers: layers.map(({ media_type, digest, size }) => ({ mediaType: media_type, digest, size })),
    }),
  );
}
