/** Stores images that no registry has: imported ones, and the built-in one. */
import { rm } from "node:fs/promises";
import { fail } from "#core/errors.ts";
import { type ImageParts, PLATFORM } from "#machines/runtime/image-source.ts";
import { assembled, layerImage, type PlainTar, readArchive } from "./archive.ts";
import type { Collector } from "./collect.ts";
import { HELLO, HELLO_CONFIG, helloFingerprint, helloLayer } from "./hello.ts";
import type { Imported } from "./imported.ts";
import { type Packed, refuseRemoved } from "./layer-store.ts";
import type { LayerSource } from "./layers.ts";
import { Once } from "./mutex.ts";
import type { NameRecord } from "./names.ts";
import { facts, inWords, type Reference, readReference } from "./reference.ts";
import { type Image, layersOf, type Store, untagged } from "./store.ts";
import { receiveTar } from "./upload.ts";

export class Intake {
  readonly #store: Store;
  readonly #collector: Collector;
  readonly #imported: Imported | undefined;
  readonly #making = new Once<NameRecord>();

  constructor(store: Store, collector: Collector, imported: Imported | undefined) {
    this.#store = store;
    this.#collector = collector;
    this.#imported = imported;
  }

  async import(
    name: string,
    upload: AsyncIterable<Uint8Array>,
    owner: string,
    signal: AbortSignal,
  ): Promise<NameRecord> {
    const reference = readReference(name, "query.name");
    refuseUnnameable(reference);
    return await this.#orCollected(
      this.#receive(upload, owner, signal, async (tar) =>
        this.#publish(reference, await readArchive(tar, reference, this.#store.limits), owner, signal),
      ),
    );
  }

  /** Imports an image whose layers are in files, or here. */
  async assemble(name: string, parts: ImageParts, owner: string, signal: AbortSignal): Promise<NameRecord> {
    const reference = readReference(name, "query.name");
    refuseUnnameable(reference);
    refuseUnprivileged();
    const { quota, limits } = this.#store;
    const work = this.#collector.working(async () => {
      const { grow, release } = await quota.upload(owner);
      try {
        for (const { file, size } of parts.layers) grow(file === undefined ? 0 : size);
        return await this.#publish(reference, assembled(parts, limits), owner, signal);
      } finally {
        release();
      }
    });
    return await this.#orCollected(work);
  }

  /** Takes the image, and gives it its name. */
  async #publish(reference: Reference, packed: Packed, owner: string, signal: AbortSignal): Promise<NameRecord> {
    const digest = await this.#take(packed, owner, signal);
    if (this.#imported) return await this.#imported.publish(reference, { packed, digest, owner }, signal);
    return await this.name(reference, digest, owner, "imported");
  }

  async #orCollected(work: Promise<NameRecord>): Promise<NameRecord> {
    try {
      return await work;
    } catch (thrown) {
      await this.#collectRefused();
      throw thrown;
    }
  }

  /** Removes the layers of a refused image at once instead of at the next clean-up. */
  async #collectRefused(): Promise<void> {
    const { log, layers } = this.#store;
    await this.#collector
      .collect({ dry_run: false, all: false })
      .then(() => layers.emptied())
      .catch((error: unknown) => log.warn({ error }, "leftovers of a refused import could not be removed"));
  }

  /** Builds `hangar/hello` on first use, and again when its inputs changed. */
  async hello(signal: AbortSignal): Promise<Image> {
    const record = await this.#making.do(HELLO, signal, async (all) => {
      const made_from = await helloFingerprint();
      const before = this.#store.names.get(PLATFORM, HELLO);
      const good = before?.made_from === made_from && (await this.#complete(before.digest));
      return good ? before : await this.#makeHello(made_from, all);
    });
    return (await this.#store.load(record.digest)) ?? notHere(readReference(HELLO));
  }

  /** Points the name to the digest. */
  async name(
    reference: Reference,
    digest: string,
    owner: string,
    source: NameRecord["source"],
    made_from?: string,
  ): Promise<NameRecord> {
    const { names, clock } = this.#store;
    const now = clock.now();
    const { registry, repository } = reference;
    // A name with a digest refers to that one alone; its tag may refer to another.
    const name = reference.digest === undefined ? reference.name : `${registry}/${repository}@${digest}`;
    const before = names.get(owner, name);
    const created_at = before?.digest === digest ? before.created_at : now;
    // The previous image stays usable by its digest while something needs it.
    if (before && before.digest !== digest)
      await names.put({ ...before, name: untagged(before, before.digest), used_at: now });
    const record = { owner, name, digest, source, created_at, used_at: now, ...(made_from ? { made_from } : {}) };
    await names.put(record);
    return record;
  }

  async #makeHello(made_from: string, signal: AbortSignal): Promise<NameRecord> {
    return await this.#receive(helloLayer(), PLATFORM, signal, async (tar) => {
      const digest = await this.#take(layerImage(tar, HELLO_CONFIG), PLATFORM, signal);
      return await this.name(readReference(HELLO), digest, PLATFORM, "built-in", made_from);
    });
  }

  /** Receives a tar, processes it, and removes it. */
  async #receive<T>(
    upload: AsyncIterable<Uint8Array>,
    owner: string,
    signal: AbortSignal,
    work: (tar: PlainTar) => Promise<T>,
  ): Promise<T> {
    refuseUnprivileged();
    const { layout, limits, quota } = this.#store;
    return await this.#collector.working(async () => {
      const { grow, release } = await quota.upload(owner);
      try {
        const tar = await receiveTar(upload, { layout, limits, grow }, signal);
        try {
          return await work(tar);
        } finally {
          await rm(tar.file, { force: true });
        }
      } finally {
        release();
      }
    });
  }

  /** Stores an image and returns its digest. */
  async #take({ documents, layers }: Packed, owner: string, signal: AbortSignal): Promise<string> {
    const { blobs } = this.#store;
    for (const { diff_id, file, claimed: verify = false, ...place } of layers) {
      const source = async (all: AbortSignal): Promise<LayerSource> =>
        file === undefined
          ? ((await this.#imported?.layerFor(owner, diff_id, all)) ?? refuseRemoved(diff_id))
          : { file, ...place, done: async () => {} };
      await this.#store.layers.ensure({ diff_id, owner, source, verify, onState: () => {} }, signal);
    }
    const [digest = ""] = await Promise.all(documents.map((document) => blobs.put(document)));
    // Checks that this host can run it, before it gets a name.
    await this.#store.load(digest);
    return digest;
  }

  async #complete(digest: string): Promise<boolean> {
    const image = await this.#store.load(digest);
    return image !== undefined && layersOf(image).every(({ diff_id }) => this.#store.layers.get(diff_id));
  }
}

export function notHere(reference: Reference): never {
  fail("image_not_found", `the image is not stored here: ${inWords(reference)}`, {
    facts: facts(reference),
    hint: `hangar images import ${reference.given} PATH, or hangar images pull ${reference.given}`,
  });
}

/** Only root can preserve file owners. */
export function refuseUnprivileged(): void {
  if (process.getuid?.() === 0) return;
  fail("image_refused", "images can only be unpacked by a platform that runs as root", {
    hint: "start the platform as root; the sim driver takes any image's name without having the image",
  });
}

function refuseUnnameable({ digest, given }: Reference): void {
  if (digest === undefined) return;
  const problem = "names a digest; an import is given a name and a tag";
  fail("invalid_request", `query.name ${problem}`, {
    details: [{ path: "query.name", problem, allowed: given.split("@")[0] ?? "" }],
  });
}
