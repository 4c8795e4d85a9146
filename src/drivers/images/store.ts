/** The parts of the image store, opened together, and what all of them need to know of an image. */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { ReleaseImages } from "#machines/runtime/image-source.ts";
import type { ImageRef } from "#machines/types.ts";
import { Blobs } from "./blobs.ts";
import {
  checkArchitecture,
  choosePlatform,
  type ImageDocument,
  isIndex,
  type Manifest,
  parseDocument,
  readConfig,
  readIndex,
  readManifest,
} from "./documents.ts";
import { type Layout, layoutOf, makeLayout } from "./files.ts";
import { Holds } from "./holds.ts";
import { type LayerRecord, Layers } from "./layers.ts";
import { IMAGE_LIMITS, type ImageLimits } from "./limits.ts";
import { type NameRecord, Names } from "./names.ts";
import { Quota } from "./quota.ts";
import type { Reference } from "./reference.ts";

export interface StoreParts {
  /** `images` in the data dir. */
  dir: string;
  clock: Clock;
  log: Log;
  /** Overridden by tests. */
  limits?: Partial<ImageLimits>;
  releases?: ReleaseImages | undefined;
}

/** An image whose documents are local. */
export interface Image {
  digest: string;
  /** Digests of all its documents. */
  documents: string[];
  /** Their total size. */
  document_bytes: number;
  manifest: Manifest;
  document: ImageDocument;
}

/** Maximum number of cached parsed images; then the cache is cleared. */
const PARSED = 1000;

export class Store {
  readonly layout: Layout;
  readonly limits: ImageLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly blobs: Blobs;
  readonly layers: Layers;
  readonly quota: Quota;
  readonly names: Names;
  readonly holds: Holds;
  readonly releases: ReleaseImages;
  readonly #parsed = new Map<string, Image>();
  readonly #document_bytes = new Map<string, number>();

  private constructor({ dir, clock, log, limits, releases = async () => [] }: StoreParts) {
    this.layout = layoutOf(dir);
    this.limits = { ...IMAGE_LIMITS, ...limits };
    this.clock = clock;
    this.log = log;
    this.blobs = new Blobs(this.layout, this.limits);
    const { layout } = this;
    const list = (): LayerRecord[] => this.layers.list();
    this.quota = new Quota({
      layers: { list },
      documentBytes: (owner) => this.#documentBytes(owner),
      layout,
      limits: this.limits,
    });
    this.layers = new Layers({ layout, limits: this.limits, log, quota: this.quota });
    this.names = new Names(this.layout, this.limits);
    this.holds = new Holds(this.layout);
    this.releases = releases;
  }

  static async open(parts: StoreParts): Promise<Store> {
    const store = new Store(parts);
    await makeLayout(store.layout);
    await store.layers.open();
    await store.names.open();
    await store.holds.open();
    await store.sweep();
    return store;
  }

  /** Removes unfinished data of an earlier process. */
  async sweep(): Promise<void> {
    const { ingest } = this.layout;
    const oldest = this.clock.now() - this.limits.partial_kept_ms;
    for (const name of await readdir(ingest)) {
      const file = join(ingest, name);
      const partial = name.startsWith("part-") && ((await stat(file).catch(() => undefined))?.mtimeMs ?? 0) > oldest;
      if (!partial) await rm(file, { recursive: true, force: true });
    }
  }

  /** Loads the image if its documents are local. Fails when it does not fit this host. */
  async load(digest: string): Promise<Image | undefined> {
    const parsed = this.#parsed.get(digest);
    if (parsed) return parsed;
    const image = await this.#read(digest);
    if (!image) return undefined;
    if (this.#parsed.size >= PARSED) this.#parsed.clear();
    this.#parsed.set(digest, image);
    this.#document_bytes.set(digest, image.document_bytes);
    return image;
  }

  forget(digest: string): void {
    this.#parsed.delete(digest);
    this.#document_bytes.delete(digest);
  }

  /** Size of the documents of an organization's images. Each is read once. */
  async #documentBytes(owner: string): Promise<number> {
    const digests = new Set(this.names.list(owner).map(({ digest }) => digest));
    let sum = 0;
    for (const digest of digests) {
      // An unusable image is reported when it is used.
      const known =
        this.#document_bytes.get(digest) ?? (await this.load(digest).catch(() => undefined))?.document_bytes;
      sum += known ?? 0;
    }
    return sum;
  }

  async #read(digest: string): Promise<Image | undefined> {
    const top = await this.blobs.read(digest);
    if (!top) return undefined;
    const index = parseDocument(top, "the manifest");
    const chosen = isIndex(index) ? choosePlatform(readIndex(index, "the index"), "the image").digest : digest;
    const bytes = chosen === digest ? top : await this.blobs.read(chosen);
    if (!bytes) return undefined;
    const manifest = readManifest(parseDocument(bytes, "the manifest"), this.limits);
    const config = await this.blobs.read(manifest.config.digest);
    if (!config) return undefined;
    const document = readConfig(parseDocument(config, "the config"), manifest.layers.length);
    checkArchitecture(document, "the image");
    const documents = [...new Set([digest, chosen, manifest.config.digest])];
    const document_bytes = top.length + (chosen === digest ? 0 : bytes.length) + config.length;
    return { digest, documents, document_bytes, manifest, document };
  }
}

export function imageRef({ registry, repository, tag }: Reference, { digest, document }: Image): ImageRef {
  return {
    registry,
    repository,
    ...(tag === undefined ? {} : { tag }),
    digest,
    ...(Object.keys(document.labels).length === 0 ? {} : { labels: document.labels }),
  };
}

/** Each layer of an image: its diff id, and its descriptor. */
export function layersOf({ manifest, document }: Image): { diff_id: string; digest: string; size: number }[] {
  return manifest.layers.map(({ digest, size }, i) => ({ diff_id: document.diff_ids[i] ?? "", digest, size }));
}

/** The name of an untagged image: `registry/repository@digest`. */
export const untagged = ({ name }: Pick<NameRecord, "name">, digest: string): string =>
  `${name.replace(/@.*|:[^/]*$/, "")}@${digest}`;

export const isUntagged = ({ name }: Pick<NameRecord, "name">): boolean => name.includes("@");

/** A name in its short form. */
export const shortName = ({ name }: Pick<NameRecord, "name">): string =>
  name.replace(/^registry-1\.docker\.io\/(library\/)?/, "");
