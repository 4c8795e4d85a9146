/**
 * Reads what a build left on its disk: an OCI layout without the layers that are known here, and the config as buildah has
 * it, because a layout's has no HEALTHCHECK. All of it is untrusted.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { BuildFailed } from "#builds/builder.ts";
import type { ImagePart, ImageParts } from "#machines/runtime/image-source.ts";
import { parseDocument, readConfig, readIndex, readManifest } from "../images/documents.ts";
import { IMAGE_LIMITS } from "../images/limits.ts";
import { openInRoot } from "../linux/calls.ts";
import { CONFIG, LAYOUT } from "./build-script.ts";

/**
 * Layers that a build need not export, by the diff id that they have in it: one layer of the store or, for a base image, which
 * builds see as one layer, all of its own.
 */
export type KnownLayers = ReadonlyMap<string, readonly ImagePart[]>;

/** The image in parts, with open files. */
export interface BuiltImageParts extends ImageParts {
  close(): void;
}

export function readBuilt(dir: string, known: KnownLayers): BuiltImageParts {
  const files = new BuildFiles(dir);
  try {
    const config = parseDocument(files.read(CONFIG), "the config");
    const [manifest] = readIndex(parseDocument(files.read(`${LAYOUT}/index.json`), "index.json"), "index.json");
    const { layers } = readManifest(
      parseDocument(files.read(blobPath(manifest?.digest)), "the manifest"),
      IMAGE_LIMITS,
    );
    const { diff_ids } = readConfig(config, layers.length);
    const parts = layers.map(({ digest, size, media_type }, i): readonly ImagePart[] => {
      const diff_id = diff_ids[i] ?? "";
      const built = () => ({ diff_id, digest, size, media_type, file: files.path(blobPath(digest)), claimed: true });
      return known.get(diff_id) ?? [built()];
    });
    return { config: configWith(config, parts), layers: parts.flat(), close: () => files.close() };
  } catch (thrown) {
    files.close();
    throw thrown;
  }
}

const blobPath = (digest = ""): string => `${LAYOUT}/blobs/${digest.replace(":", "/")}`;

/** The config with the layers that the parts have. */
function configWith(config: Record<string, unknown>, parts: readonly (readonly ImagePart[])[]): Buffer {
  const diff_ids = parts.flat().map(({ diff_id }) => diff_id);
  const history = Array.isArray(config["history"]) ? (config["history"] as unknown[]) : [];
  const [base] = history;
  const of_base = parts[0]?.length ?? 1;
  // The first entry is that of a base image, and each of its layers has to have one.
  const whole = of_base > 1 && base ? [...Array.from({ length: of_base }, () => base), ...history.slice(1)] : history;
  return Buffer.from(JSON.stringify({ ...config, history: whole, rootfs: { type: "layers", diff_ids } }));
}

/** Files of the build's disk. Paths in it cannot lead out of it. */
class BuildFiles {
  readonly #root: number;
  readonly #open: number[] = [];

  constructor(dir: string) {
    this.#root = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
    this.#open.push(this.#root);
  }

  read(path: string): Buffer {
    const fd = this.#file(path);
    const { size } = fstatSync(fd);
    if (size > IMAGE_LIMITS.document_bytes)
      throw new BuildFailed(`${path} of the image has ${size} bytes (limit document_bytes)`);
    const bytes = Buffer.alloc(size);
    readSync(fd, bytes, 0, size, 0);
    return bytes;
  }

  /** A path that leads to this very file while it is open. */
  path(path: string): string {
    return `/proc/self/fd/${this.#file(path)}`;
  }

  close(): void {
    for (const fd of this.#open.splice(0)) closeSync(fd);
  }

  /** Steps of the build may have put anything in its place. */
  #file(path: string): number {
    try {
      const fd = openInRoot(this.#root, path, constants.O_RDONLY | constants.O_NONBLOCK);
      this.#open.push(fd);
      if (fstatSync(fd).isFile()) return fd;
    } catch {
      // It is not there, or a link.
    }
    throw new BuildFailed("the build left no image");
  }
}
