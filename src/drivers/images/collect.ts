import type { Collected } from "#machines/runtime/image-source.ts";
import type { Imported } from "./imported.ts";
import type { NameRecord } from "./names.ts";
import { isUntagged, layersOf, type Store, shortName } from "./store.ts";

/** Removes unused images and layers. */
export class Collector {
  readonly #store: Store;
  readonly #imported: Imported | undefined;
  /** Pulls and imports in progress, whose data has no name yet. */
  #working = 0;
  #collecting: Promise<unknown> = Promise.resolve();

  constructor(store: Store, imported?: Imported) {
    this.#store = store;
    this.#imported = imported;
  }

  /** Blocks clean-up while `work` runs, and waits for a running one. */
  async working<T>(work: () => Promise<T>): Promise<T> {
    this.#working++;
    try {
      await this.#collecting;
      return await work();
    } finally {
      this.#working--;
    }
  }

  /** Runs one clean-up at a time. */
  async collect(request: { dry_run: boolean; all: boolean }): Promise<Collected> {
    const before = this.#collecting;
    const done = Promise.withResolvers<void>();
    this.#collecting = done.promise;
    try {
      await before;
      const imported = (await this.#imported?.collect(request)) ?? [];
      const found = await this.#find(request);
      const { images, ...rest } = await this.#answer(found);
      const answer = { ...rest, images: [...imported.map(goneImage), ...images], dry_run: request.dry_run };
      if (request.dry_run) return answer;
      for (const record of found.names) await this.#store.names.remove(record);
      for (const digest of found.blobs) {
        await this.#store.blobs.remove(digest);
        this.#store.forget(digest);
      }
      for (const diff_id of found.layers) await this.#store.layers.remove(diff_id);
      return answer;
    } finally {
      done.resolve();
    }
  }

  async keepCollecting(signal: AbortSignal): Promise<void> {
    const { clock, limits, log } = this.#store;
    while (!signal.aborted) {
      await clock.sleep(limits.collect_ms, signal).catch(() => {});
      if (signal.aborted) return;
      await this.collect({ dry_run: false, all: false }).then(
        ({ images, layers, bytes }) => {
          if (layers.length > 0) log.info({ images: images.length, layers: layers.length, bytes }, "images cleaned up");
        },
        (error: unknown) => log.warn({ error }, "images could not be cleaned up"),
      );
    }
  }

  async idle(): Promise<void> {
    await this.#collecting;
    await this.#store.layers.emptied();
  }

  async #find({ all }: { all: boolean }): Promise<Found> {
    const { names, holds, layers, blobs, clock, limits } = this.#store;
    const needed_by = [...holds.list(), ...(await this.#store.releases())];
    const held = new Set(needed_by.map(({ digest }) => digest));
    const now = clock.now();
    const going = names.list().filter((record) => {
      const kept_ms = record.source === "pulled" ? limits.unused_kept_ms : limits.replaced_kept_ms;
      // Imported names stay until they are removed.
      const passing = record.source === "pulled" || isUntagged(record);
      return passing && !held.has(record.digest) && (all || record.used_at < now - kept_ms);
    });
    // Data being pulled has no name yet; so only names are removed, and their layers at the next clean-up.
    if (this.#working > 0) return { names: going, blobs: [], layers: [] };
    const staying = new Set([
      ...held,
      ...names
        .list()
        .filter((one) => !going.includes(one))
        .map(({ digest }) => digest),
    ]);
    const documents = new Set<string>();
    const needed = new Set<string>();
    for (const digest of staying) {
      const image = await this.#store.load(digest).catch(() => undefined);
      // Unreadable images stay.
      for (const document of image?.documents ?? [digest]) documents.add(document);
      for (const { diff_id } of image ? layersOf(image) : []) needed.add(diff_id);
    }
    return {
      names: going,
      blobs: (await blobs.list()).filter((digest) => !documents.has(digest)),
      layers: layers.list().flatMap(({ diff_id }) => (needed.has(diff_id) ? [] : [diff_id])),
    };
  }

  async #answer({ names, blobs, layers }: Found): Promise<Omit<Collected, "dry_run">> {
    const going = layers.map((diff_id) => ({ diff_id, bytes: this.#store.layers.get(diff_id)?.bytes ?? 0 }));
    const sizes = await Promise.all(blobs.map((digest) => this.#store.blobs.size(digest)));
    return {
      images: names.map(goneImage),
      layers: going,
      bytes: [...going.map(({ bytes }) => bytes), ...sizes].reduce((sum, bytes) => sum + bytes, 0),
    };
  }
}

const goneImage = ({ name, owner, digest }: Pick<NameRecord, "name" | "owner" | "digest">) => ({
  name: shortName({ name }),
  owner,
  digest,
});

interface Found {
  names: NameRecord[];
  blobs: string[];
  layers: string[];
}
