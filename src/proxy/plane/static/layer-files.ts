/** Files of an image, served from its layers. */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import type { ImageLayer } from "#machines/runtime/image-source.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import type { ResponseHead } from "../http1/head.ts";
import type { UpstreamConnection } from "../http1/upstream.ts";
import { conditions, rangeOf } from "./conditions.ts";
import { FileConnection, type Files, type Wanted } from "./files.ts";
import { LayerTree, type Place } from "./layer-tree.ts";
import { mediaType } from "./media-types.ts";

/** A file found in a layer. Layers are immutable, so results are cached. */
interface Found {
  file: string;
  size: number;
  modified_ms: number;
  etag: string;
}

export class LayerFiles implements Files {
  readonly #tree: LayerTree;
  readonly #from: string;
  readonly #known = new Map<string, Found | undefined>();

  constructor(layers: readonly ImageLayer[], guest_path: string) {
    this.#tree = new LayerTree(layers);
    this.#from = guest_path;
  }

  async find(wanted: Wanted): Promise<UpstreamConnection | undefined> {
    const found = await this.#find(wanted.path);
    if (!found) return undefined;
    const fields = ["etag", found.etag, "last-modified", httpDate(found.modified_ms), "accept-ranges", "bytes"];
    if (conditions(wanted, found) === "unchanged") return new FileConnection(answer(304, 0, fields));
    fields.push("content-type", mediaType(found.file));
    const { size } = found;
    const range = rangeOf(wanted, found);
    if (range === "none") return new FileConnection(answer(416, 0, ["content-range", `bytes */${size}`]));
    const { start, end } = range ?? { start: 0, end: size };
    if (range) fields.push("content-range", `bytes ${start}-${end - 1}/${size}`);
    const status = range ? 206 : 200;
    if (wanted.method === "HEAD" || end === start) {
      return new FileConnection(answer(status, 0, [...fields, "content-length", String(end - start)]));
    }
    // Opened before the response begins, because the image may just have been cleaned up.
    const handle = await open(found.file, "r");
    const body = handle.createReadStream({ start, end: end - 1 });
    return new FileConnection(answer(status, end - start, fields), body);
  }

  async #find(path: string): Promise<Found | undefined> {
    if (this.#known.has(path)) return this.#known.get(path);
    const place = await this.#tree.find(`${this.#from}/${path}`);
    const found = place?.stats.isFile() ? fileOf(place) : undefined;
    // Clients choose the paths, so the cache is limited.
    if (this.#known.size >= PROXY_LIMITS.static_paths) this.#known.clear();
    this.#known.set(path, found);
    return found;
  }
}

function fileOf({ file, stats: { size, mtimeMs } }: Place): Found {
  // A layer's name is the digest of its content.
  const etag = createHash("sha256").update(`${file} ${size} ${mtimeMs}`).digest("base64url").slice(0, 22);
  return { file, size, modified_ms: mtimeMs, etag: `"${etag}"` };
}

const httpDate = (ms: number): string => new Date(ms).toUTCString();

const answer = (status: number, length: number, fields: string[]): ResponseHead => ({
  status,
  reason: REASONS[status] ?? "",
  length,
  keep_alive: true,
  keep_s: 0,
  upgrade: undefined,
  fields,
});

const REASONS: Record<number, string> = {
  200: "OK",
  206: "Partial Content",
  304: "Not Modified",
  416: "Range Not Satisfiable",
};
