import type { Log } from "#core/log.ts";
import type { ImageFiles, ImageLayer } from "#machines/runtime/image-source.ts";
import type { Entry } from "#network/directory.ts";

interface Parts {
  images: ImageFiles;
  /** Called when more of an app's images is known. */
  onChange(app_id: string): void;
  log: Log;
}

/**
 * Caches the local layers of machines' images. Tables are built synchronously, so an unknown image is looked up in the
 * background and the table is rebuilt.
 */
export class ImageLayers {
  readonly #parts: Parts;
  readonly #known = new Map<string, ImageLayer[]>();
  readonly #loading = new Set<string>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  of({ app_id, org_id, image_ref }: Entry): ImageLayer[] | undefined {
    const key = `${org_id} ${image_ref.digest}`;
    const known = this.#known.get(key);
    if (known || image_ref.digest === "" || this.#loading.has(key)) return known;
    this.#loading.add(key);
    void this.#load(key, { app_id, org_id, image_ref });
    return undefined;
  }

  /** Forgets images that none of these machines uses, because they may be cleaned up. */
  keep(machines: Iterable<Entry>): void {
    const used = new Set<string>();
    for (const { org_id, image_ref } of machines) used.add(`${org_id} ${image_ref.digest}`);
    for (const key of this.#known.keys()) if (!used.has(key)) this.#known.delete(key);
  }

  async #load(
    key: string,
    { app_id, org_id, image_ref }: Pick<Entry, "app_id" | "org_id" | "image_ref">,
  ): Promise<void> {
    try {
      const layers = await this.#parts.images.layers(image_ref, org_id);
      // An image that is not local yet is looked up again when its machine has started.
      if (layers) this.#known.set(key, layers);
      if (layers) this.#parts.onChange(app_id);
    } catch (error) {
      this.#parts.log.warn({ error, image: image_ref.repository }, "an image's files cannot be served");
    } finally {
      this.#loading.delete(key);
    }
  }
}
