import { createHash, type Hash } from "node:crypto";
import { open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Layout, writeWhole } from "./files.ts";
import type { ImageLimits } from "./limits.ts";
import { refuseImage } from "./refusal.ts";

export const digestOf = (bytes: Uint8Array | string): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
export const hexOf = (digest: string): string => digest.slice("sha256:".length);

/** A download: its offset and its end. */
export interface Fetch {
  digest: string;
  size: number;
  owner: string;
  /** Opens the bytes from `offset` on; `from` is 0 when the server does not support ranges. */
  open(offset: number, signal: AbortSignal): Promise<{ from: number; body: AsyncIterable<Uint8Array> }>;
  /** Reports the number of bytes received. */
  onBytes(done: number): void;
}

/** Stores documents by digest, and layers being downloaded. Everything is verified when it is written. */
export class Blobs {
  readonly #layout: Layout;
  readonly #limits: ImageLimits;

  constructor(layout: Layout, limits: ImageLimits) {
    this.#layout = layout;
    this.#limits = limits;
  }

  async has(digest: string): Promise<boolean> {
    return (await stat(this.#file(digest)).catch(() => undefined)) !== undefined;
  }

  /** A local document, or undefined. */
  async read(digest: string): Promise<Buffer | undefined> {
    try {
      return await readFile(this.#file(digest));
    } catch (thrown) {
      if ((thrown as { code?: string }).code === "ENOENT") return undefined;
      throw thrown;
    }
  }

  async put(bytes: Uint8Array): Promise<string> {
    const digest = digestOf(bytes);
    if (!(await this.has(digest))) await writeWhole(this.#layout, this.#file(digest), bytes);
    return digest;
  }

  async list(): Promise<string[]> {
    return (await readdir(this.#layout.blobs)).map((hex) => `sha256:${hex}`);
  }

  async remove(digest: string): Promise<void> {
    await rm(this.#file(digest), { force: true });
  }

  async size(digest: string): Promise<number> {
    return (await stat(this.#file(digest)).catch(() => undefined))?.size ?? 0;
  }

  /**
   * Downloads a layer to a file in `ingest` and returns its path once the digest matches. Partial downloads are
   * resumed. Throws what `open` and its body throw; then the partial file stays.
   */
  async ingest(fetch: Fetch, signal: AbortSignal): Promise<string> {
    const { digest, size, owner } = fetch;
    // One file per owner: bytes that another one downloaded prove nothing about this one's access.
    const part = join(this.#layout.ingest, partName(digest, owner));
    const before = await hashed(part);
    const { at, hash } = before.at < size ? await receive(part, before, fetch, signal) : before;
    if (at === size && `sha256:${hash.digest("hex")}` === digest) return part;
    // A truncated download is resumed; any other mismatch is not.
    if (at < size) throw new CutShort(at);
    await rm(part, { force: true });
    if (before.at > 0) throw new CutShort(0);
    refuseImage(`a layer is not what its digest ${digest} says`, {
      hint: "the registry, or something before it, damaged the data; try again",
    });
  }

  /** Refuses a document that is too large, before parsing. */
  checkSize(bytes: number, what: string): void {
    if (bytes > this.#limits.document_bytes)
      refuseImage(`${what} has more than ${this.#limits.document_bytes} bytes (limit document_bytes)`);
  }

  #file(digest: string): string {
    return join(this.#layout.blobs, hexOf(digest));
  }
}

/** The partial file of an owner's layer. */
export const partName = (digest: string, owner: string): string =>
  `part-${hexOf(digest)}-${hexOf(digestOf(owner)).slice(0, 12)}`;

/** The server closed early; the partial file stays. */
export class CutShort extends Error {
  override readonly name = "CutShort";
  readonly at: number;

  constructor(at: number) {
    super(`cut short after ${at} bytes`);
    this.at = at;
  }
}

interface Hashed {
  at: number;
  hash: Hash;
}

/** Hashes an existing file. */
async function hashed(file: string): Promise<Hashed> {
  const hash = createHash("sha256");
  const handle = await open(file, "a+", 0o600);
  try {
    let at = 0;
    const buffer = Buffer.alloc(1024 * 1024);
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return { at, hash };
      hash.update(buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
  } finally {
    await handle.close();
  }
}

/** Resumes from the existing part, or from the beginning when the server ignores the range. */
async function receive(file: string, before: Hashed, fetch: Fetch, signal: AbortSignal): Promise<Hashed> {
  fetch.onBytes(before.at);
  const { from, body } = await fetch.open(before.at, signal);
  const anew = from !== before.at;
  const hash = anew ? createHash("sha256") : before.hash;
  let at = anew ? 0 : before.at;
  const handle = await open(file, anew ? "w" : "a", 0o600);
  try {
    for await (const chunk of body) {
      at += chunk.length;
      // More than announced is an error; the excess is dropped.
      if (at > fetch.size) break;
      hash.update(chunk);
      await handle.writeFile(chunk);
      fetch.onBytes(at);
    }
    return { at, hash };
  } finally {
    await handle.close();
  }
}
