import { rm } from "node:fs/promises";
import type { Response } from "undici";
import type { Clock } from "#core/clock.ts";
import { type Blobs, CutShort, digestOf } from "../blobs.ts";
import { ACCEPT, choosePlatform, isIndex, parseDocument, readIndex, readManifest } from "../documents.ts";
import type { LayerSource } from "../layers.ts";
import type { ImageLimits } from "../limits.ts";
import { Mutex } from "../mutex.ts";
import { facts, inWords, type Reference } from "../reference.ts";
import { refuseImage } from "../refusal.ts";
import { Registry, Transient } from "./client.ts";
import type { CredentialFile } from "./credentials.ts";
import type { Reach } from "./reach.ts";
import { retrying } from "./retry.ts";

interface PullerParts {
  clock: Clock;
  limits: ImageLimits;
  blobs: Blobs;
  credentials: CredentialFile;
  reach: Reach;
}

export interface LayerFetch {
  digest: string;
  size: number;
  /** The owner of the pull. */
  owner: string;
  onBytes(done: number): void;
}

/** Pulls images from registries: documents at once, layers on demand. */
export class Puller {
  readonly #parts: PullerParts;
  readonly #downloads: Mutex;

  constructor(parts: PullerParts) {
    this.#parts = parts;
    this.#downloads = new Mutex(parts.limits.downloads_parallel);
  }

  /**
   * Resolves the name to a digest and stores all documents of the image: index, manifest and config. `admit` fails when
   * they are not allowed, before anything is written.
   */
  async documents(
    reference: Reference,
    admit: (digest: string, bytes: number) => Promise<void>,
    signal: AbortSignal,
  ): Promise<string> {
    const { blobs, limits } = this.#parts;
    const registry = await this.#registry(reference);
    const top = await this.#manifest(registry, reference, reference.digest ?? reference.tag ?? "latest", signal);
    const index = parseDocument(top, "the manifest");
    const manifest = isIndex(index)
      ? await this.#manifest(registry, reference, chosenOf(index, reference), signal)
      : top;
    const { config } = readManifest(parseDocument(manifest, "the manifest"), limits);
    // Fetched even if local: naming a document gives no access, and it may be another organization's.
    const document = await this.#document(registry, reference, { path: `blobs/${config.digest}` }, signal);
    if (digestOf(document) !== config.digest) this.#damaged(reference, config.digest);
    await admit(digestOf(top), top.length + (manifest === top ? 0 : manifest.length) + document.length);
    await blobs.put(document);
    if (manifest !== top) await blobs.put(manifest);
    return await blobs.put(top);
  }

  /** Downloads a layer to a file. */
  async layer(
    reference: Reference,
    { digest, size, owner, onBytes }: LayerFetch,
    signal: AbortSignal,
  ): Promise<LayerSource> {
    const { blobs } = this.#parts;
    return await this.#downloads.acquire(signal, async () => {
      const registry = await this.#registry(reference);
      let done = 0;
      const open = (offset: number) => this.#open(registry, digest, offset, signal);
      const fetch = {
        digest,
        size,
        owner,
        open,
        onBytes: (bytes: number): void => {
          done = bytes;
          onBytes(bytes);
        },
      };
      const attempt = async (): Promise<string> => {
        try {
          return await blobs.ingest(fetch, signal);
        } catch (thrown) {
          throw thrown instanceof CutShort ? new Transient(`the layer was ${thrown.message}`) : thrown;
        }
      };
      const file = await retrying(this.#parts, reference, signal, attempt, () => done);
      return { file, start: 0, length: size, done: () => rm(file, { force: true }) };
    });
  }

  async #registry(reference: Reference): Promise<Registry> {
    const { clock, limits, reach, credentials } = this.#parts;
    return new Registry(reference, { clock, limits, reach, credentials: await credentials.find(reference.registry) });
  }

  async #manifest(registry: Registry, reference: Reference, which: string, signal: AbortSignal): Promise<Buffer> {
    const request = { path: `manifests/${which}`, accept: ACCEPT };
    const bytes = await this.#document(registry, reference, request, signal);
    if (which.startsWith("sha256:") && digestOf(bytes) !== which) this.#damaged(reference, which);
    return bytes;
  }

  async #document(
    registry: Registry,
    reference: Reference,
    request: { path: string; accept?: string },
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { blobs } = this.#parts;
    return await retrying(this.#parts, reference, signal, async () => {
      const response = await registry.get(request, signal);
      blobs.checkSize(Number(response.headers.get("content-length") ?? 0), "a document of the image");
      const chunks: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of this.#body(response, signal)) {
        length += chunk.length;
        blobs.checkSize(length, "a document of the image");
        chunks.push(chunk);
      }
      const bytes = Buffer.concat(chunks);
      const announced = response.headers.get("docker-content-digest");
      if (announced?.startsWith("sha256:") && announced !== digestOf(bytes)) this.#damaged(reference, announced);
      return bytes;
    });
  }

  async #open(registry: Registry, digest: string, offset: number, signal: AbortSignal) {
    const response = await registry.get({ path: `blobs/${digest}`, offset }, signal);
    const from =
      response.status === 206 ? Number(/bytes (\d+)-/.exec(response.headers.get("content-range") ?? "")?.[1] ?? 0) : 0;
    return { from, body: this.#body(response, signal) };
  }

  /** Streams the body, with a stall timeout. */
  async *#body(response: Response, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { clock, limits } = this.#parts;
    const reader = response.body?.getReader();
    if (!reader) return;
    try {
      for (;;) {
        const waited = new AbortController();
        const late = clock
          .sleep(limits.stall_ms, AbortSignal.any([signal, waited.signal]))
          .then(() => Promise.reject(new Transient(`nothing came for ${limits.stall_ms / 1000} s`)));
        late.catch(() => {});
        const next = await Promise.race([reader.read(), late]).finally(() => waited.abort());
        if (next.done) return;
        yield next.value as Uint8Array;
      }
    } catch (thrown) {
      signal.throwIfAborted();
      throw thrown instanceof Transient ? thrown : new Transient("the connection broke off", { cause: thrown });
    } finally {
      await reader.cancel().catch(() => {});
    }
  }

  #damaged(reference: Reference, digest: string): never {
    refuseImage(`what the registry sent is not what its digest ${digest} says: ${inWords(reference)}`, {
      facts: facts(reference),
      hint: "the registry, or something before it, damaged the data; try again",
    });
  }
}

const chosenOf = (index: Record<string, unknown>, reference: Reference): string =>
  choosePlatform(readIndex(index, "the index"), inWords(reference)).digest;
