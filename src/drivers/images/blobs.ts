import { createHash, type Hash } from "node:crypto";
import { open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Layout, writeWhole } from "./files.ts";
import type { ImageLimits } from "./limits.ts";
import { refuseImage } from "./refusal.ts";

export const digestOf = (bytes: Uint8Array | string): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
export const hexOf = (digest: string): string => digest.slice("sha256:".length);

/** What is fetched: where it goes on from, and where it is to end. */
export interface Fetch {
  digest: string;
  size: number;
  owner: string;
  /** The bytes from `offset` on; `from` is 0 when the other side cannot begin in the middle. */
  open(offset: number, signal: AbortSignal): Promise<{ from: number; body: AsyncIterable<Uint8Array> }>;
  /** So many bytes are there. */
  onBytes(done: number): void;
}

/** Small documents by digest, and layers on their way in. Everything read from it was checked when it was written. */
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

  /** A document that is here, or undefined. */
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
   * Fetches a layer into a file of `ingest` and answers its path, once its digest is right. What was fetched in
   * part before is gone on with. Throws what `open` and its body throw; then what came so far stays.
   */
  async ingest(fetch: Fetch, signal: AbortSignal): Promise<string> {
    const { digest, size, owner } = fetch;
    // Each owner's own: bytes that another fetched show nothing about who asks now.
    const part = join(this.#layout.ingest, partName(digest, owner));
    const before = await hashed(part);
    const { at, hash } = before.at < size ? await receive(part, before, fetch, signal) : before;
    if (at === size && `sha256:${hash.digest("hex")}` === digest) return part;
    // Cut short is for the caller to go on with; anything else must not be gone on with.
    if (at < size) throw new CutShort(at);
    await rm(part, { force: true });
    if (before.at > 0) throw new CutShort(0);
    refuseImage(`a layer is not what its digest ${digest} says`, {
      hint: "the registry, or something before it, damaged the data; try again",
    });
  }

  /** Refuses a document that is too large before it is parsed. */
  checkSize(bytes: number, what: string): void {
    if (bytes > this.#limits.document_bytes)
      refuseImage(`${what} has more than ${this.#limits.document_bytes} bytes (limit document_bytes)`);
  }

  #file(digest: string): string {
    return join(this.#layout.blobs, hexOf(digest));
  }
}

/** The file that an owner's layer is fetched into. */
export const partName = (digest: string, owner: string): string =>
  `part-${hexOf(digest)}-${hexOf(digestOf(owner)).slice(0, 12)}`;

/** The other side stopped before the end; what came is kept. */
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

/** What is there of a file, hashed. */
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

/** Goes on from what is there, or from the beginning when the other side can do nothing else. */
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
      // More than was promised is a fault; none of it need be kept.
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
