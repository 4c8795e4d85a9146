/** Images of the platform's own registry: documents and layers come from its store instead of over the network. */
import { rm } from "node:fs/promises";
import { fail } from "#core/errors.ts";
import { OWN_REGISTRY, type PushedImages } from "#machines/runtime/pushed-images.ts";
import { digestOf } from "./blobs.ts";
import { choosePlatform, isIndex, parseDocument, readIndex, readManifest } from "./documents.ts";
import { temporary } from "./files.ts";
import type { LayerSource } from "./layers.ts";
import { facts, inWords, type Reference, readReference } from "./reference.ts";
import { refuseImage } from "./refusal.ts";
import type { Image, Store } from "./store.ts";

export class Pushed {
  readonly #store: Store;
  readonly #images: PushedImages;

  constructor(store: Store, images: PushedImages) {
    this.#store = store;
    this.#images = images;
  }

  /** Parses an image name; aliases of the platform's registry get its canonical name. */
  read(image: string, field?: string): Reference {
    const reference = readReference(image, field);
    return this.#images.isOwn(reference.registry) ? canonical(reference) : reference;
  }

  /** Loads the image's documents into the store; undefined when the repository does not have it. */
  async load(reference: Reference, org_id: string, signal: AbortSignal): Promise<Image | undefined> {
    const { repository, tag, digest } = reference;
    const wanted = digest === undefined ? { tag: tag ?? "latest" } : { digest };
    const found = await this.#images.find(org_id, repository, wanted);
    if (found === undefined) return undefined;
    const known = await this.#store.load(found);
    if (known) return known;
    const { blobs, limits } = this.#store;
    const get = async (one: string): Promise<Buffer> => {
      const bytes = await this.#images.document(org_id, repository, one, signal);
      blobs.checkSize(bytes.length, "a document of the image");
      if (digestOf(bytes) !== one) refuseImage(`a document is not what its digest ${one} says`);
      await blobs.put(bytes);
      return bytes;
    };
    const top = parseDocument(await get(found), "the manifest");
    const chosen = isIndex(top) ? choosePlatform(readIndex(top, "the index"), reference.given).digest : undefined;
    const manifest = chosen === undefined ? top : parseDocument(await get(chosen), "the manifest");
    await get(readManifest(manifest, limits).config.digest);
    return await this.#store.load(found);
  }

  /** Writes a layer to a file. */
  async layer(
    { repository }: Reference,
    org_id: string,
    layer: { digest: string; size: number },
    signal: AbortSignal,
  ): Promise<LayerSource> {
    const file = temporary(this.#store.layout, "layer");
    const done = (): Promise<void> => rm(file, { force: true });
    try {
      await this.#images.blob(org_id, repository, layer.digest, file, signal);
    } catch (thrown) {
      await done();
      throw thrown;
    }
    return { file, start: 0, length: layer.size, digest: layer.digest, done, failed: done };
  }
}

export const isPushed = ({ registry }: Reference): boolean => registry === OWN_REGISTRY;

/** The image was never pushed; no network request is made. */
export function notPushed(reference: Reference): never {
  fail("image_not_found", `the image was not pushed: ${inWords(reference)}`, {
    facts: facts(reference),
    hint: `push it, for example with docker push; hangar registry list shows what is there`,
  });
}

function canonical({ repository, tag, digest, given }: Reference): Reference {
  const place = `${OWN_REGISTRY}/${repository}`;
  const name = tag === undefined ? `${place}@${digest}` : `${place}:${tag}`;
  return { registry: OWN_REGISTRY, repository, tag, digest, name, given };
}
