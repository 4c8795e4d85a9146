/** How much of the disk one organization's images may take. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { fail } from "#core/errors.ts";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import { partName } from "./blobs.ts";
import type { Layout } from "./files.ts";
import type { ImageLimits } from "./limits.ts";
import type { TreeFacts } from "./tree.ts";

/** Disk usage of an entry beside its content: a block for a small file, a directory or its name. */
const ENTRY_BYTES = 4096;

export const treeBytes = ({ bytes, entries }: Pick<TreeFacts, "bytes" | "entries">): number =>
  bytes + entries * ENTRY_BYTES;

/** Interval between checks of free space while data grows. */
const LOOK_BYTES = 4 * 2 ** 20;

interface QuotaParts {
  layers: { list(): readonly (Pick<TreeFacts, "entries" | "bytes"> & { owners: readonly string[] })[] };
  /** Size of the manifests and configs of an organization's images. */
  documentBytes(owner: string): Promise<number>;
  layout: Layout;
  limits: ImageLimits;
}

/**
 * Counts each layer and document for every organization that has it, plus partial downloads and uploads in progress.
 * The platform's own images are not counted.
 */
export class Quota {
  readonly #parts: QuotaParts;
  /** By owner: layers being downloaded, by suffix of their file name, and uploads, with their sizes. */
  readonly #under_way = new Map<string, Map<object | string, number>>();

  constructor(parts: QuotaParts) {
    this.#parts = parts;
  }

  /** Remaining bytes of an organization. */
  async left(owner: string): Promise<number> {
    if (this.#isFree(owner)) return Number.POSITIVE_INFINITY;
    return this.#left(owner, await this.#fetched(owner));
  }

  /** Fails with `limit_reached` when the organization would exceed its quota. */
  async check(owner: string, bytes: number): Promise<void> {
    if (bytes > (await this.left(owner))) this.refuse();
  }

  /** Counts a layer before its download, until the returned function is called. */
  async fetch(owner: string, { digest, size }: { digest: string; size: number }): Promise<() => void> {
    if (this.#isFree(owner)) return () => {};
    const key = partName(digest, owner);
    const fetched = await this.#fetched(owner, key);
    if (size > this.#left(owner, fetched)) this.refuse();
    return this.#take(owner, key, size);
  }

  /** Begins an upload. `grow` fails with `limit_reached` at the quota. */
  async upload(owner: string): Promise<{ grow(bytes: number): void; release(): void }> {
    if (this.#isFree(owner)) return { grow() {}, release() {} };
    const fetched = await this.#fetched(owner);
    const key = {};
    let [taken, look_at] = [0, 0];
    return {
      grow: (bytes) => {
        taken += bytes;
        this.#take(owner, key, taken);
        if (taken < look_at) return;
        look_at = taken + LOOK_BYTES;
        if (this.#left(owner, fetched) < 0) this.refuse();
      },
      release: this.#take(owner, key, 0),
    };
  }

  refuse(): never {
    const gib = this.#parts.limits.org_image_bytes / 2 ** 30;
    fail("limit_reached", `the images of an organization take at most ${gib} GiB (setting image_quota_gb)`, {
      hint: "remove some with `hangar images rm`; pulled ones that nothing uses go with `hangar images gc --all`",
    });
  }

  #isFree(owner: string): boolean {
    return owner === PLATFORM || this.#parts.limits.org_image_bytes === 0;
  }

  #left(owner: string, fetched: number): number {
    const { layers, limits } = this.#parts;
    const own = layers.list().filter(({ owners }) => owners.includes(owner));
    const unpacked = own.reduce((sum, record) => sum + treeBytes(record), 0);
    const under_way = sum([...(this.#under_way.get(owner)?.values() ?? [])]);
    return limits.org_image_bytes - unpacked - fetched - under_way;
  }

  #take(owner: string, key: object | string, bytes: number): () => void {
    const own = this.#under_way.get(owner) ?? new Map<object | string, number>();
    this.#under_way.set(owner, own.set(key, bytes));
    return () => {
      own.delete(key);
      if (own.size === 0 && this.#under_way.get(owner) === own) this.#under_way.delete(owner);
    };
  }

  /** Size of documents and of partial downloads that are not in progress. */
  async #fetched(owner: string, but?: string): Promise<number> {
    const { layout, documentBytes } = this.#parts;
    const { ingest } = layout;
    const ending = partName("", owner).slice("part-".length);
    const now = this.#under_way.get(owner);
    const files = (await readdir(ingest)).filter((name) => name.endsWith(ending) && name !== but && !now?.has(name));
    const sizes = files.map(async (name) => (await stat(join(ingest, name)).catch(() => undefined))?.size ?? 0);
    return sum([await documentBytes(owner), ...(await Promise.all(sizes))]);
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
