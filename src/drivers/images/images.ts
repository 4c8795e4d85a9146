/** Images for machines: resolves names, pulls and holds layers, and lists local images. */
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Lookup } from "#core/public-addresses.ts";
import type { Settings } from "#core/settings.ts";
import type { CallHandlers, StreamHandlers } from "#hosts/channel.ts";
import {
  type Collected,
  type HeldImage,
  type Holder,
  type ImageCatalog,
  type ImageDetails,
  type ImageFiles,
  type ImageLayer,
  type ImagePart,
  type ImageParts,
  type ImageSource,
  type ImageSummary,
  PLATFORM,
  type PullProgress,
  type ReleaseImages,
} from "#machines/runtime/image-source.ts";
import type { ImportedImage } from "#machines/runtime/imported-images.ts";
import type { PushedImages } from "#machines/runtime/pushed-images.ts";
import type { ImageRef } from "#machines/types.ts";
import { Collector } from "./collect.ts";
import { temporary } from "./files.ts";
import { HELLO } from "./hello.ts";
import { Imported, ownersFor, type Sharing } from "./imported.ts";
import { hinted } from "./in-use.ts";
import { Intake, notHere, refuseUnprivileged } from "./intake.ts";
import type { ImageLimits } from "./limits.ts";
import type { NameRecord } from "./names.ts";
import { ProgressStream } from "./progress-stream.ts";
import { isPushed, notPushed, Pushed } from "./pushed.ts";
import { type Reference, readReference, referenceOf } from "./reference.ts";
import { CredentialFile } from "./registry/credentials.ts";
import { Puller } from "./registry/pull.ts";
import { Reach } from "./registry/reach.ts";
import { unreachable } from "./registry/retry.ts";
import { layerStoreCalls, layerStoreStreams } from "./remote-layer-store.ts";
import { removeName } from "./removal.ts";
import { describe, summarize } from "./responses.ts";
import { type Image, imageRef, layersOf, Store } from "./store.ts";

type ImageSettings = Pick<Settings, "registry_config" | "registry_allow_private"> &
  Partial<Pick<Settings, "image_quota_gb">>;

interface ImageOptions {
  sharing?: Sharing;
  /** The platform's own registry. */
  pushed?: PushedImages;
  releases?: ReleaseImages;
  /** Overridden by tests. */
  lookup?: Lookup;
}

/** Opens the image store. `dir` is `images` in the data dir. */
export async function openImages(
  dir: string,
  { registry_config, registry_allow_private: allow_private, image_quota_gb }: ImageSettings,
  clock: Clock,
  log: Log,
  { sharing, pushed, releases, lookup, ...limits }: Partial<ImageLimits> & ImageOptions = {},
): Promise<Images> {
  const quota = image_quota_gb === undefined ? {} : { org_image_bytes: image_quota_gb * 2 ** 30 };
  const store = await Store.open({ dir, clock, log, limits: { ...quota, ...limits }, releases });
  const imported = sharing && new Imported(store, sharing);
  const reach = new Reach({ allow_private, connect_timeout_ms: store.limits.answer_ms, lookup });
  const registries = { credentials: new CredentialFile(registry_config), reach };
  const images = new Images(store, registries, imported, pushed && new Pushed(store, pushed));
  images.start();
  return images;
}

type OnProgress = (progress: PullProgress) => void;
const silent: OnProgress = () => {};

export class Images implements ImageSource, ImageCatalog, ImageFiles {
  readonly #store: Store;
  readonly #reach: Reach;
  readonly #puller: Puller;
  readonly #collector: Collector;
  readonly #intake: Intake;
  readonly #imported: Imported | undefined;
  readonly #pushed: Pushed | undefined;
  readonly #closing = new AbortController();

  constructor(
    store: Store,
    registries: { credentials: CredentialFile; reach: Reach },
    imported?: Imported,
    pushed?: Pushed,
  ) {
    const { clock, limits, blobs } = store;
    this.#store = store;
    this.#reach = registries.reach;
    this.#puller = new Puller({ clock, limits, blobs, ...registries });
    this.#collector = new Collector(store, imported);
    this.#imported = imported;
    this.#pushed = pushed;
    this.#intake = new Intake(store, this.#collector, imported);
  }

  /** What other processes may fetch from here; undefined in a single process. */
  get layer_store(): { calls: CallHandlers; streams: StreamHandlers } | undefined {
    const { layer_store } = this.#imported ?? {};
    if (!layer_store) return undefined;
    return {
      calls: layerStoreCalls(layer_store),
      streams: layerStoreStreams(layer_store, () => temporary(this.#store.layout, "sent")),
    };
  }

  /** Starts periodic clean-up. */
  start(): void {
    void this.#collector.keepCollecting(this.#closing.signal);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#collector.idle();
    await this.#reach.close();
  }

  async resolve(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef> {
    const reference = this.#read(image);
    const here = await this.#here(reference, org_id, signal);
    if (here) return imageRef(reference, here);
    const late = AbortSignal.timeout(this.#store.limits.resolve_ms);
    try {
      return imageRef(
        reference,
        await this.#documents(reference, org_id, AbortSignal.any([signal, late, this.#closing.signal])),
      );
    } catch (thrown) {
      if (late.aborted && !signal.aborted) unreachable(reference, new Error("it takes too long, limit resolve_ms"));
      throw reference.digest === undefined ? thrown : hinted(thrown);
    }
  }

  async hold({ id, org_id }: Holder, ref: ImageRef, signal: AbortSignal): Promise<HeldImage> {
    const { holds, layers } = this.#store;
    const reference = referenceOf(ref);
    // First, so that clean-up keeps what is about to be used.
    holds.put({ machine_id: id, org_id, digest: ref.digest });
    const image = await this.#collector.working(async () => {
      const known = await this.#known(ref.digest, org_id);
      if (known) return known;
      const here = await this.#here(reference, org_id, signal);
      // `hangar/hello` differs between hosts, because it is built from local files: this host's own is used.
      const own = here ?? (isHello(reference) ? await this.#intake.hello(signal) : undefined);
      const found = own ?? (await this.#documents(reference, org_id, signal));
      await this.#layers(found, reference, org_id, silent, signal);
      return found;
    });
    const folders = layersOf(image).map(({ diff_id }) => ({
      folder: layers.folder(diff_id),
      record: layers.get(diff_id),
    }));
    // overlayfs cannot mark a root as opaque, so layers hidden by such a layer are omitted.
    const lowest = Math.max(
      0,
      folders.findLastIndex(({ record }) => record?.opaque_root),
    );
    const { config, architecture, labels, exposed_ports } = image.document;
    const facts = { config, architecture, labels, exposed_ports };
    return {
      ref: { ...ref, ...imageRef(reference, image) },
      layers: folders.slice(lowest).map(({ folder }) => folder),
      ...facts,
    };
  }

  async layers({ digest }: ImageRef, org_id: string): Promise<ImageLayer[] | undefined> {
    const image = await this.#known(digest, org_id);
    const found: ImageLayer[] = [];
    for (const { diff_id } of image ? layersOf(image).toReversed() : []) {
      const record = this.#store.layers.get(diff_id);
      // Without the list of opaque directories the hidden files are unknown.
      if (!record?.opaque) return undefined;
      found.push({ dir: this.#store.layers.folder(diff_id), opaque: record.opaque });
      if (record.opaque_root) break;
    }
    return image ? found : undefined;
  }

  async release(machine_id: string): Promise<void> {
    await this.#store.holds.remove(machine_id);
  }

  async list(owner: string): Promise<ImageSummary[]> {
    const { names } = this.#store;
    const owners = owner === PLATFORM ? [undefined] : ownersFor(owner);
    const imported = await Promise.all(owners.map(async (one) => (await this.#imported?.records(one)) ?? []));
    const records = [...imported.flat(), ...owners.flatMap((one) => names.list(one))];
    const all = await Promise.all(records.map((record) => summarize(this.#store, record, owner)));
    return all.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async show(image: string, owner: string): Promise<ImageDetails> {
    const reference = this.#read(image, "query.image");
    for (const one of ownersFor(owner)) {
      const imported = await this.#imported?.find(reference, one);
      if (imported) await this.#imported?.load(imported);
      const record = imported ? { ...imported, source: "imported" as const, used_at: imported.created_at } : undefined;
      const named = record ?? this.#named(reference, one);
      if (named) return await describe(this.#store, named, owner);
    }
    return notHere(reference);
  }

  async import(
    name: string,
    upload: AsyncIterable<Uint8Array>,
    owner: string,
    signal: AbortSignal,
  ): Promise<ImageSummary> {
    return await summarize(this.#store, await this.#intake.import(name, upload, owner, signal), owner);
  }

  async assemble(name: string, image: ImageParts, owner: string, signal: AbortSignal): Promise<ImageSummary> {
    return await summarize(this.#store, await this.#intake.assemble(name, image, owner, signal), owner);
  }

  async parts(digest: string, owner: string): Promise<ImagePart[] | undefined> {
    const image = await this.#known(digest, owner);
    if (!image) return undefined;
    const { diff_ids } = image.document;
    if (this.#imported && !(await this.#imported.layer_store.has(diff_ids))) return undefined;
    return image.manifest.layers.map(({ digest: packed, size, media_type }, i) => ({
      diff_id: diff_ids[i] ?? "",
      digest: packed,
      size,
      media_type,
    }));
  }

  async *pull(image: string, owner: string, signal: AbortSignal): AsyncIterable<PullProgress> {
    const reference = this.#read(image, "body.image");
    refuseUnprivileged();
    yield { state: "resolving" };
    const updates = new ProgressStream();
    const work = this.#collector.working(async () => {
      const found = isHello(reference)
        ? await this.#intake.hello(signal)
        : await this.#documents(reference, owner, signal);
      await this.#layers(found, reference, owner, (update) => updates.say(update), signal);
      return found;
    });
    work.then(
      () => updates.end(),
      () => updates.end(),
    );
    yield* updates;
    await work;
    const record = this.#named(reference, owner);
    yield { state: "done", ...(record ? { image: await summarize(this.#store, record, owner) } : {}) };
  }

  async remove(image: string, owner: string): Promise<void> {
    await removeName(this.#store, this.#imported, this.#read(image, "query.image"), owner);
    await this.#collector.collect({ dry_run: false, all: false });
  }

  async collect(request: { dry_run: boolean; all: boolean }): Promise<Collected> {
    return await this.#collector.collect(request);
  }

  /** The image, if it is complete and available to the organization, whatever its name resolves to now. */
  async #known(digest: string, owner: string): Promise<Image | undefined> {
    const image = digest === "" ? undefined : await this.#store.load(digest);
    return image && layersOf(image).every(({ diff_id }) => this.#store.layers.has(diff_id, owner)) ? image : undefined;
  }

  /** Parses an image name. */
  #read(image: string, field?: string): Reference {
    return this.#pushed?.read(image, field) ?? readReference(image, field);
  }

  /** The image, if the name is known to the organization or the platform. */
  async #here(reference: Reference, owner: string, signal: AbortSignal): Promise<Image | undefined> {
    const hello = isHello(reference) ? await this.#intake.hello(signal) : undefined;
    if (hello && (reference.digest ?? hello.digest) === hello.digest) return hello;
    const { names, clock } = this.#store;
    if (this.#pushed && isPushed(reference)) return await this.#documents(reference, owner, signal);
    const imported = await this.#elsewhere(reference, owner);
    if (imported) return await this.#imported?.load(imported);
    const record = this.#named(reference, owner);
    if (!record) return undefined;
    names.touch(record, clock.now());
    return await this.#store.load(record.digest);
  }

  /** An image imported by any process, unless the owner has another under the name. */
  async #elsewhere(reference: Reference, owner: string): Promise<ImportedImage | undefined> {
    for (const one of ownersFor(owner)) {
      const found = await this.#imported?.find(reference, one);
      const own = reference.digest === undefined && this.#store.names.get(one, reference.name);
      if (found || own) return found;
    }
    return undefined;
  }

  /** The owner's own names take precedence over those of the platform. */
  #named(reference: Reference, owner: string): NameRecord | undefined {
    const { names } = this.#store;
    const { name, digest, registry, repository } = reference;
    const owners = ownersFor(owner);
    const exact = owners
      .map((one) => names.get(one, name))
      .find((record) => record && (!digest || record.digest === digest));
    if (exact || !digest) return exact;
    // The tag resolves to another digest now, or does not exist.
    return (
      owners
        .map((one) => names.get(one, `${registry}/${repository}@${digest}`))
        .find((record) => record !== undefined) ??
      owners
        .flatMap((one) => names.list(one))
        .find((record) => record.digest === digest && record.name.startsWith(`${registry}/${repository}:`))
    );
  }

  /** Resolves the name at the registry and stores it. */
  async #documents(reference: Reference, owner: string, signal: AbortSignal): Promise<Image> {
    return await this.#collector.working(async () => {
      const { names, quota } = this.#store;
      const admit = async (found: string, bytes: number): Promise<void> => {
        // Images that the owner already has are already counted.
        if (!names.list(owner).some((record) => record.digest === found)) await quota.check(owner, bytes);
      };
      const pushed = this.#pushed && isPushed(reference) ? this.#pushed : undefined;
      const digest = pushed
        ? ((await pushed.load(reference, owner, signal)) ?? notPushed(reference)).digest
        : await this.#puller.documents(reference, admit, signal);
      const image = await this.#store.load(digest);
      if (!image) return notHere(reference);
      await this.#intake.name(reference, digest, owner, "pulled");
      return image;
    });
  }

  /** Ensures that all layers are local and available to the owner. */
  async #layers(
    image: Image,
    reference: Reference,
    owner: string,
    onProgress: OnProgress,
    signal: AbortSignal,
  ): Promise<void> {
    refuseUnprivileged();
    const own = this.#named({ ...reference, digest: image.digest }, owner);
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal, this.#closing.signal]);
    const releases: (() => void)[] = [];
    const one = async ({ diff_id, digest, size }: ReturnType<typeof layersOf>[number]): Promise<void> => {
      const report = (state: PullProgress["state"], done_bytes?: number): void =>
        onProgress({ layer: diff_id, state, ...(done_bytes === undefined ? {} : { done_bytes }), total_bytes: size });
      await this.#store.layers.ensure(
        {
          diff_id,
          owner,
          onState: report,
          source: async (all) => {
            const imported = await this.#elsewhere({ ...reference, digest: image.digest }, owner);
            if (imported) return (await this.#imported?.layer(imported, diff_id, all)) ?? notHere(reference);
            if (own && own.source !== "pulled") return notHere(reference);
            releases.push(await this.#store.quota.fetch(owner, { digest, size }));
            report("waiting");
            if (this.#pushed && isPushed(reference))
              return await this.#pushed.layer(reference, owner, { digest, size }, all);
            return await this.#puller.layer(
              reference,
              { digest, size, owner, onBytes: (done) => report("downloading", done) },
              all,
            );
          },
        },
        either,
      );
    };
    try {
      await Promise.all(layersOf(image).map(one));
    } catch (thrown) {
      // One failure aborts the others.
      failed.abort(thrown);
      throw thrown;
    } finally {
      for (const release of releases) release();
    }
  }
}

/** With any tag: there is only one. */
const isHello = ({ registry, repository }: Reference): boolean => HELLO.startsWith(`${registry}/${repository}:`);
