/** Hand-made tars, valid and invalid, and an image store. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type PackedEntry, TAR_END, tarHeader, tarPadding } from "#archive/tar.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import type { Lookup } from "#core/public-addresses.ts";
import { configDocument } from "./archive.ts";
import { digestOf } from "./blobs.ts";
import { MEDIA } from "./documents.ts";
import { type Images, openImages } from "./images.ts";
import { IMAGE_LIMITS, type ImageLimits } from "./limits.ts";
import { type Unpacked, unpack } from "./unpack.ts";

export const NEVER: AbortSignal = new AbortController().signal;

export const NOT_ROOT: string | false = process.getuid?.() === 0 ? false : "only root can keep the owners of files";

export type Given = Partial<Omit<PackedEntry, "type">> & { path: string; body?: string; type?: PackedEntry["type"] };

/** One tar entry with its content. */
export function entry({ body = "", ...given }: Given): Buffer {
  const bytes = Buffer.from(body);
  const mode = given.type === "directory" ? 0o755 : 0o644;
  const whole: PackedEntry = { type: "file", mode, uid: 0, gid: 0, mtime: 1000, size: bytes.length, ...given };
  return Buffer.concat([tarHeader(whole), bytes, tarPadding(bytes.length)]);
}

export const file = (path: string, body = "x"): Buffer => entry({ path, body });
export const dir = (path: string): Buffer => entry({ path: `${path}/`, type: "directory" });
export const symlink = (path: string, link: string): Buffer => entry({ path, type: "symlink", link });
export const hardlink = (path: string, link: string): Buffer => entry({ path, type: "hardlink", link });
export const tar = (...parts: Buffer[]): Buffer => Buffer.concat([...parts, TAR_END]);

/** A header with some fields overwritten and a correct checksum. */
export function forged(from: Buffer, change: (header: Buffer) => void): Buffer {
  const header = Buffer.from(from);
  change(header);
  header.write("        ", 148);
  const sum = header.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

export function tempStore(t: Pick<TestContext, "after">): string {
  const folder = mkdtempSync(join(tmpdir(), "hangar-images-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Files below a directory that this process has open. */
export const openBelow = (folder: string): string[] =>
  readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${fd}`);
      return file.startsWith(folder) ? [file] : [];
    } catch {
      return []; // The listing itself, for example.
    }
  });

export interface UnpackedTar extends Unpacked {
  root: string;
}

/** Unpacks a tar into a new directory. */
export async function unpackTar(
  base: string,
  name: string,
  bytes: Buffer,
  limits: Partial<ImageLimits> = {},
): Promise<UnpackedTar> {
  const source = join(base, `${name}.tar`);
  const root = join(base, name);
  writeFileSync(source, bytes);
  mkdirSync(root);
  const task = { file: source, start: 0, length: bytes.length, into: root, limits: { ...IMAGE_LIMITS, ...limits } };
  return { ...(await unpack(task)), root };
}

interface StoreOptions {
  dir?: string;
  limits?: Partial<ImageLimits>;
  registry_config?: string;
  /** Test registries, on loopback. */
  allow_private?: string[];
  lookup?: Lookup;
}

export async function openStore(
  t: Pick<TestContext, "after">,
  { dir = tempStore(t), limits, registry_config, allow_private = [], lookup }: StoreOptions = {},
): Promise<Images & { dir: string }> {
  const settings = { registry_config, registry_allow_private: allow_private };
  const options = { ...limits, ...(lookup ? { lookup } : {}) };
  const images = await openImages(join(dir, "images"), settings, systemClock, silentLog, options);
  t.after(() => images.close());
  return Object.assign(images, { dir: join(dir, "images") });
}

/** Splits bytes into pieces, as a network does. */
export async function* pieces(bytes: Buffer, length = 100_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

export interface MadeImage {
  manifest: Buffer;
  config: Buffer;
  /** Blobs by digest, including the config. */
  blobs: Map<string, Buffer>;
  digest: string;
}

/** Builds an OCI image of these layers; `packed` gives the transferred form of a tar. */
export function makeImage(
  layers: readonly Buffer[],
  own: Record<string, unknown> = {},
  packed: (tar: Buffer) => Buffer = (bytes) => bytes,
): MadeImage {
  const travelling = layers.map(packed);
  const config = configDocument(layers.map(digestOf), own);
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MEDIA.manifest,
      config: { mediaType: MEDIA.config, digest: digestOf(config), size: config.length },
      layers: travelling.map((bytes) => ({
        mediaType: `${MEDIA.layer}+gzip`,
        digest: digestOf(bytes),
        size: bytes.length,
      })),
    }),
  );
  const blobs = new Map([config, ...travelling].map((bytes) => [digestOf(bytes), bytes]));
  return { manifest, config, blobs, digest: digestOf(manifest) };
}

/** The image as an OCI layout in a tar. */
export function ociArchive({ manifest, blobs, digest }: MadeImage, ref_name = "1"): Buffer {
  const annotations = { "org.opencontainers.image.ref.name": ref_name };
  const index = {
    schemaVersion: 2,
    manifests: [{ mediaType: MEDIA.manifest, digest, size: manifest.length, annotations }],
  };
  const all = new Map(blobs).set(digest, manifest);
  return tar(
    file("oci-layout", JSON.stringify({ imageLayoutVersion: "1.0.0" })),
    file("index.json", JSON.stringify(index)),
    ...[...all].map(([name, bytes]) =>
      Buffer.concat([header(`blobs/${name.replace(":", "/")}`, bytes), bytes, tarPadding(bytes.length)]),
    ),
  );
}

/** The image as an OCI layout in a directory. */
export function writeLayout(folder: string, image: Pick<MadeImage, "blobs" | "digest" | "manifest">): string {
  mkdirSync(join(folder, "blobs/sha256"), { recursive: true });
  for (const [digest, bytes] of new Map(image.blobs).set(image.digest, image.manifest))
    writeFileSync(join(folder, "blobs", digest.replace(":", "/")), bytes);
  const manifests = [
    { mediaType: "application/vnd.oci.image.manifest.v1+json", digest: image.digest, size: image.manifest.length },
  ];
  writeFileSync(join(folder, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
  writeFileSync(join(folder, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  return folder;
}

export const header = (path: string, bytes: Buffer): Buffer =>
  tarHeader({ path, type: "file", mode: 0o644, uid: 0, gid: 0, mtime: 0, size: bytes.length });

export const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
