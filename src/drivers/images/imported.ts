/**
 * Imported images in a platform of several processes: names are in the database, layers in the object store or at the
 * process that imported them, and other processes fetch them from there. Layers unpacked here are treated like those
 * of a pulled image: they are deleted when no machine needs them.
 */
import { rm, stat } from "node:fs/promises";
import { ApiError, fail } from "#core/errors.ts";
import type { ObjectStore } from "#core/objects.ts";
import { PLATFORM } from "#machines/runtime/image-source.ts";
import type { ImportedImage, ImportedImages } from "#machines/runtime/imported-images.ts";
import { digestOf } from "./blobs.ts";
import { choosePlatform, isIndex, parseDocument, readIndex, readManifest } from "./documents.ts";
import { temporary } from "./files.ts";
import { LayerStore, type LayerStoreReader, type Packed } from "./layer-store.ts";
import type { LayerSource } from "./layers.ts";
import { type NameRecord, refuseTooMany } from "./names.ts";
import { facts, inWords, type Reference, readReference } from "./reference.ts";
import { type Image, isUntagged, layersOf, type Store, shortName, untagged } from "./store.ts";

export interface Sharing {
  names: ImportedImages;
  node_id: string;
  /** Stores packed images. */
  objects: ObjectStore;
  /** The layer store of another process, when `objects` is local to this one: its address and client. */
  remote?: (node_id: string) => Promise<{ address: string; layer_store: LayerStoreReader } | undefined>;
}

export class Imported {
  readonly layer_store: LayerStore;
  readonly #store: Store;
  readonly #sharing: Sharing;

  constructor(store: Store, sharing: Sharing) {
    this.#store = store;
    this.#sharing = sharing;
    this.layer_store = new LayerStore(sharing.objects, store.layout);
  }

  /** Finds a name of one owner. With a digest, under any name. */
  async find(reference: Reference, owner: string): Promise<ImportedImage | undefined> {
    const { names } = this.#sharing;
    const { digest, name } = reference;
    if (digest === undefined) return await names.find(owner, name);
    return (await names.withDigest(digest)).find((image) => image.owner === owner);
  }

  /** Loads the image, fetching missing documents. */
  async load(found: ImportedImage): Promise<Image> {
    const known = await this.#store.load(found.digest);
    if (known) return known;
    const { blobs, limits } = this.#store;
    await this.#from(found, async (layer_store) => {
      const get = async (digest: string): Promise<Buffer> => {
        const bytes = (await layer_store.document(digest)) ?? lost(found);
        blobs.checkSize(bytes.length, "a document of the image");
        if (digestOf(bytes) !== digest) lost(found);
        await blobs.put(bytes);
        return bytes;
      };
      const top = parseDocument(await get(found.digest), "the manifest");
      const chosen = isIndex(top) ? choosePlatform(readIndex(top, "the index"), found.name).digest : undefined;
      const manifest = chosen === undefined ? top : parseDocument(await get(chosen), "the manifest");
      await get(readManifest(manifest, limits).config.digest);
    });
    return (await this.#store.load(found.digest)) ?? lost(found);
  }

  /** Writes one of its layers to a file. */
  async layer(found: ImportedImage, diff_id: string, signal: AbortSignal): Promise<LayerSource> {
    const file = temporary(this.#store.layout, "layer");
    const there = await this.#from(found, (layer_store) => layer_store.layer(diff_id, file, signal));
    if (!there) lost(found);
    const { size } = await stat(file);
    const done = (): Promise<void> => rm(file, { force: true });
    return { file, start: 0, length: size, done, failed: done };
  }

  /** A layer of any image that the owner may use; undefined when none has it. */
  async layerFor(owner: string, diff_id: string, signal: AbortSignal): Promise<LayerSource | undefined> {
    for (const one of ownersFor(owner))
      for (const found of await this.#sharing.names.list(one)) {
        const image = await this.load(found);
        if (layersOf(image).some((layer) => layer.diff_id === diff_id)) return await this.layer(found, diff_id, signal);
      }
    return undefined;
  }

  /** Makes an imported image available to its owner on all hosts. */
  async publish(
    reference: Reference,
    image: { packed: Packed; digest: string; owner: string },
    signal: AbortSignal,
  ): Promise<NameRecord> {
    const { names, node_id } = this.#sharing;
    const { packed, digest, owner } = image;
    const { name } = reference;
    const before = await names.find(owner, name);
    if (!before) refuseTooMany((await names.list(owner)).length, this.#store.limits);
    await this.layer_store.put(packed, signal);
    const now = this.#store.clock.now();
    // The previous image stays usable by its digest while something needs it.
    if (before && before.digest !== digest)
      await names.put({ ...before, name: untagged(before, before.digest), created_at: now });
    const created_at = before?.digest === digest ? before.created_at : now;
    const put = { owner, name, digest, node_id, created_at };
    await names.put(put);
    // Stored again, because a concurrent removal of an image with the same layers did not know of this one.
    await this.layer_store.put(packed, signal).catch(async (thrown: unknown) => {
      await names.remove(owner, name);
      throw thrown;
    });
    return recordOf(put);
  }

  async records(owner?: string): Promise<NameRecord[]> {
    return (await this.#sharing.names.list(owner)).map(recordOf);
  }

  /** Machines that would have no image without it. */
  async users({ digest, owner }: Pick<ImportedImage, "digest" | "owner">): Promise<string[]> {
    const others = await this.#sharing.names.withDigest(digest);
    return others.length > 1 ? [] : await this.#sharing.names.users(digest, owner === PLATFORM ? undefined : owner);
  }

  /** `keep`: removes only the tag. */
  async remove(found: ImportedImage, { keep }: { keep: boolean }): Promise<void> {
    const { names } = this.#sharing;
    if (keep) await names.put({ ...found, name: untagged(found, found.digest) });
    await names.remove(found.owner, found.name);
    await this.#forget(found);
  }

  async isNamedTwice(digest: string): Promise<boolean> {
    return (await this.#sharing.names.withDigest(digest)).length > 1;
  }

  /** Removes untagged images that no machine and no release uses, and returns them. */
  async collect({ dry_run, all }: { dry_run: boolean; all: boolean }): Promise<ImportedImage[]> {
    const { clock, limits, releases } = this.#store;
    const { names } = this.#sharing;
    const released = new Set((await releases()).map(({ digest }) => digest));
    const oldest = clock.now() - limits.replaced_kept_ms;
    const deleted: ImportedImage[] = [];
    for (const image of (await names.list()).filter(isUntagged)) {
      const needed = released.has(image.digest) || (await names.users(image.digest)).length > 0;
      if (needed || !(all || image.created_at < oldest)) continue;
      deleted.push(image);
      if (!dry_run) await this.remove(image, { keep: false });
    }
    return deleted;
  }

  /** Without any name left, removes the layers that only this image used. */
  async #forget(removed: ImportedImage): Promise<void> {
    const { names, remote } = this.#sharing;
    if ((await names.withDigest(removed.digest)).length > 0) return;
    try {
      const image = await this.load(removed);
      // Images in another store do not keep this store's layers.
      const beside = (await names.list()).filter(({ node_id }) => !remote || node_id === removed.node_id);
      const others = await Promise.all(beside.map((one) => this.load(one)));
      const needed = new Set(
        others.flatMap((one) => [...one.documents, ...layersOf(one).map(({ diff_id }) => diff_id)]),
      );
      const unneeded = (digests: readonly string[]): string[] => digests.filter((digest) => !needed.has(digest));
      const layers = unneeded(layersOf(image).map(({ diff_id }) => diff_id));
      await this.#from(removed, (layer_store) => layer_store.remove({ documents: unneeded(image.documents), layers }));
    } catch (error) {
      // A failure costs only disk space.
      this.#store.log.warn(
        { error, image: removed.name },
        "an imported image could not be removed from its layer store",
      );
    }
  }

  async #from<T>(found: ImportedImage, work: (layer_store: LayerStoreReader) => Promise<T>): Promise<T> {
    const { remote, node_id } = this.#sharing;
    if (!remote || found.node_id === node_id) return await work(this.layer_store);
    const there = await remote(found.node_id);
    try {
      return await work(there?.layer_store ?? fail("host_unreachable", "its last heartbeat is too old"));
    } catch (cause) {
      if (!(cause instanceof ApiError) || cause.code !== "host_unreachable") throw cause;
      const reference = readReference(found.name);
      const at = there ? ` at ${there.address}` : "";
      const who = `process ${found.node_id}${at}, which does not answer`;
      fail("image_elsewhere", `${shortName(found)} was imported by ${who}`, {
        cause,
        facts: facts(reference),
        retry_after_s: 5,
        hint: "start that process with --host-listen at an address that the others reach, or all of them with the same HANGAR_OBJECTS_URL",
      });
    }
  }
}

/** Whose names apply to an owner, in this order. */
export const ownersFor = (owner: string): string[] => (owner === PLATFORM ? [PLATFORM] : [owner, PLATFORM]);

const recordOf = ({ owner, name, digest, created_at }: ImportedImage): NameRecord => ({
  owner,
  name,
  digest,
  source: "imported",
  created_at,
  used_at: created_at,
});

function lost(found: ImportedImage): never {
  const reference = readReference(found.name);
  fail("image_not_found", `the process that imported the image is unknown: ${inWords(reference)}`, {
    facts: facts(reference),
    hint: `hangar images import ${reference.given} PATH`,
  });
}
