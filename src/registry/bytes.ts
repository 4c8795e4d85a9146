/** The bytes of blobs: in the object store, or on the disk of the process that took them. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { fail } from "#core/errors.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { RepositoryBlob } from "./types.ts";

/** Blobs stored by another process. */
export interface RemoteBytes {
  /** Writes the object to a file. Returns false, without a file, when it does not exist. */
  fetch(key: string, file: string, signal: AbortSignal): Promise<boolean>;
  remove(keys: readonly string[]): Promise<void>;
}

interface Parts {
  objects: ObjectStore;
  node_id: string;
  /** Absent when all processes share the object store. */
  remote?: ((node_id: string) => Promise<RemoteBytes | undefined>) | undefined;
  /** A unique file name. */
  temporary(): string;
}

/** Buffer size per reader. */
const PIECE_BYTES = 1024 * 1024;

export class BlobBytes {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get node_id(): string {
    return this.#parts.node_id;
  }

  get objects(): ObjectStore {
    return this.#parts.objects;
  }

  /** A unique key per upload, so that a delete never affects a concurrent upload. */
  static key(digest: string, now_ms: number): string {
    return `blobs/${digest.replace(":", "-")}/${now_ms}-${randomBytes(6).toString("hex")}`;
  }

  /** When the key was made. */
  static madeAt(key: string): number {
    return Number(/\/(\d+)-[0-9a-f]+$/.exec(key)?.[1] ?? 0);
  }

  async put(key: string, body: Uint8Array | { file: string }): Promise<void> {
    await this.#parts.objects.put(key, body);
  }

  /** Streams `length` bytes from `offset`. */
  async *read(
    blob: RepositoryBlob,
    { offset, length }: { offset: number; length: number },
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const remote = await this.#remote(blob);
    if (remote) return yield* this.#readRemote(remote, blob, { offset, length }, signal);
    const end = offset + length;
    for (let at = offset; at < end && !signal.aborted; ) {
      const piece = await this.#parts.objects.get(blob.key, { offset: at, length: Math.min(PIECE_BYTES, end - at) });
      if (!piece || piece.length === 0) lost(blob);
      yield piece;
      at += piece.length;
    }
  }

  /** Writes the whole blob to a file. */
  async fetch(blob: RepositoryBlob, file: string, signal: AbortSignal): Promise<void> {
    const remote = await this.#remote(blob);
    const found = remote
      ? await remote.fetch(blob.key, file, signal)
      : await this.#parts.objects.getFile(blob.key, file);
    if (!found) lost(blob);
  }

  async remove(removed: readonly Pick<RepositoryBlob, "key" | "node_id">[]): Promise<void> {
    for (const [node_id, keys] of Map.groupBy(removed, (one) => one.node_id)) {
      const there = this.#isHere(node_id) ? undefined : await this.#parts.remote?.(node_id);
      const all = keys.map(({ key }) => key);
      if (there) await there.remove(all);
      else if (this.#isHere(node_id)) await this.#parts.objects.delete(all);
    }
  }

  #isHere(node_id: string): boolean {
    return this.#parts.remote === undefined || node_id === this.#parts.node_id;
  }

  async #remote({ node_id }: RepositoryBlob): Promise<RemoteBytes | undefined> {
    if (this.#isHere(node_id)) return undefined;
    return (
      (await this.#parts.remote?.(node_id)) ??
      fail("image_elsewhere", `the blob is on the disk of process ${node_id}, which does not answer`, {
        retry_after_s: 5,
        hint: "start all control processes with the same HANGAR_OBJECTS_URL",
      })
    );
  }

  async *#readRemote(
    remote: RemoteBytes,
    blob: RepositoryBlob,
    { offset, length }: { offset: number; length: number },
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const file = this.#parts.temporary();
    try {
      if (!(await remote.fetch(blob.key, file, signal))) lost(blob);
      const { createReadStream } = await import("node:fs");
      if (length > 0) yield* createReadStream(file, { start: offset, end: offset + length - 1 });
    } finally {
      await rm(file, { force: true });
    }
  }
}

function lost({ digest }: RepositoryBlob): never {
  fail("storage_failed", `the bytes of blob ${digest} are not where they were stored`, {
    hint: "push the image again; `hangar doctor` checks the disk",
  });
}
