/** Uploads of blobs that are under way: a file each, so that they survive a restart of the platform. */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { RegistryLimits } from "./limits.ts";
import { algorithmOf } from "./paths.ts";

export interface Upload {
  id: string;
  org_id: string;
  repository: string;
  /** Received bytes. */
  size: number;
}

interface Parts {
  dir: string;
  clock: Clock;
  ids: Ids;
  limits: RegistryLimits;
  /** Remaining quota of the organization. */
  left(org_id: string): Promise<number>;
}

/** Interval between checks of disk space and quota. */
const LOOK_BYTES = 8 * 2 ** 20;

export class Uploads {
  readonly #parts: Parts;
  /** Running digests of uploads that this process began; others are read again. */
  readonly #hashes = new Map<string, { hash: Hash; size: number }>();
  /** Uploads with a request in progress. */
  readonly #busy = new Set<string>();
  readonly #sizes = new Map<string, Upload>();

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Uploads of an earlier process can be continued. */
  static async open(parts: Parts): Promise<Uploads> {
    const uploads = new Uploads(parts);
    await mkdir(parts.dir, { recursive: true, mode: 0o700 });
    for (const name of await readdir(parts.dir)) {
      const upload = name.endsWith(".json") ? await uploads.#load(name.slice(0, -".json".length)) : undefined;
      if (upload) uploads.#sizes.set(upload.id, upload);
    }
    for (const name of await readdir(parts.dir))
      if (!uploads.#sizes.has(name.replace(/\.\w+$/, ""))) await rm(join(parts.dir, name), { force: true });
    return uploads;
  }

  async begin(org_id: string, repository: string): Promise<Upload> {
    const { ids, limits } = this.#parts;
    const open_now = [...this.#sizes.values()].filter((upload) => upload.org_id === org_id).length;
    if (open_now >= limits.uploads_per_org) {
      fail(
        "limit_reached",
        `an organization has at most ${limits.uploads_per_org} uploads open (limit uploads_per_org)`,
        {
          hint: "finish or cancel some; those without a request for a day are removed",
        },
      );
    }
    const upload: Upload = { id: ids.ulid(), org_id, repository, size: 0 };
    this.#sizes.set(upload.id, upload);
    const file = this.#file(upload.id, "json");
    await writeFile(this.#file(upload.id, "part"), "", { mode: 0o600 });
    await writeFile(`${file}.new`, JSON.stringify({ org_id, repository }), { mode: 0o600 });
    await rename(`${file}.new`, file);
    this.#hashes.set(upload.id, { hash: createHash("sha256"), size: 0 });
    return upload;
  }

  /** The upload of this repository, or an error. */
  find(id: string, org_id: string, repository: string): Upload {
    const upload = this.#sizes.get(id);
    if (!upload || upload.org_id !== org_id || upload.repository !== repository) {
      fail("blob_upload_unknown", "there is no such upload", {
        hint: "it was finished, cancelled or removed, or another control process took it; begin a new one",
      });
    }
    return upload;
  }

  /** Appends a chunk. With `start` it must begin where the last one ended. */
  async append(upload: Upload, chunk: AsyncIterable<Uint8Array>, start?: number): Promise<void> {
    await this.#alone(upload, async () => {
      if (start !== undefined && start !== upload.size) {
        fail("range_invalid", `the chunk begins at ${start}, and the upload has ${upload.size} bytes`, {
          headers: { range: rangeOf(upload), "content-length": "0" },
        });
      }
      const known = this.#hashes.get(upload.id);
      const hash = known?.size === upload.size ? known.hash : undefined;
      await this.#receive(upload, chunk, hash);
      if (hash) this.#hashes.set(upload.id, { hash, size: upload.size });
    });
  }

  /** Hands over the file once its digest matches. Then the upload is removed. */
  async finish<T>(upload: Upload, digest: string, take: (file: string) => Promise<T>): Promise<T> {
    return await this.#alone(upload, async () => {
      const found = await this.#digest(upload, algorithmOf(digest));
      if (found !== digest) {
        await this.#remove(upload);
        fail("digest_invalid", `the blob's digest is ${found}, not ${digest}`);
      }
      const taken = await take(this.#file(upload.id, "part"));
      await this.#remove(upload);
      return taken;
    });
  }

  async cancel(upload: Upload): Promise<void> {
    await this.#alone(upload, () => this.#remove(upload));
  }

  /** Bytes of an organization's open uploads. */
  bytes(org_id: string): number {
    return [...this.#sizes.values()].reduce((sum, one) => sum + (one.org_id === org_id ? one.size : 0), 0);
  }

  /** Removes idle uploads. */
  async expire(): Promise<void> {
    const oldest = this.#parts.clock.now() - this.#parts.limits.upload_kept_ms;
    for (const upload of this.#sizes.values()) {
      const found = await stat(this.#file(upload.id, "part")).catch(() => undefined);
      if (!this.#busy.has(upload.id) && (found?.mtimeMs ?? 0) < oldest) await this.#remove(upload);
    }
  }

  async #receive(upload: Upload, chunk: AsyncIterable<Uint8Array>, hash: Hash | undefined): Promise<void> {
    const { limits } = this.#parts;
    const handle = await open(this.#file(upload.id, "part"), "a");
    let look_at = upload.size;
    try {
      for await (const piece of chunk) {
        const size = upload.size + piece.length;
        if (size > limits.blob_bytes)
          fail("payload_too_large", `a blob has at most ${limits.blob_bytes} bytes (limit blob_bytes)`);
        if (size >= look_at) {
          await this.refuseFull(upload.org_id, piece.length);
          look_at = size + LOOK_BYTES;
        }
        await handle.writeFile(piece);
        hash?.update(piece);
        upload.size = size;
      }
    } finally {
      await handle.close();
    }
  }

  /** Fails unless the organization's quota and the disk have room for these bytes. */
  async refuseFull(org_id: string, coming: number): Promise<void> {
    const { limits, dir, left } = this.#parts;
    if ((await left(org_id)) < coming) {
      const gib = limits.org_bytes / 2 ** 30;
      fail("limit_reached", `the registry keeps at most ${gib} GiB of an organization (setting image_quota_gb)`, {
        hint: "delete tags or manifests that are not needed",
      });
    }
    const { bavail, bsize } = await statfs(dir);
    if (bavail * bsize < limits.disk_kept_bytes + coming)
      fail("storage_full", "the disk of the platform is nearly full (limit disk_kept_bytes)");
  }

  async #digest(upload: Upload, algorithm: "sha256" | "sha512"): Promise<string> {
    const known = this.#hashes.get(upload.id);
    if (algorithm === "sha256" && known?.size === upload.size) return `sha256:${known.hash.copy().digest("hex")}`;
    const hash = createHash(algorithm);
    for await (const piece of createReadStream(this.#file(upload.id, "part"))) hash.update(piece as Buffer);
    return `${algorithm}:${hash.digest("hex")}`;
  }

  /** Concurrent requests to one upload would mix their bytes. */
  async #alone<T>(upload: Upload, work: () => Promise<T>): Promise<T> {
    if (this.#busy.has(upload.id))
      fail("range_invalid", "another request writes to this upload", { headers: { range: rangeOf(upload) } });
    this.#busy.add(upload.id);
    try {
      return await work();
    } finally {
      this.#busy.delete(upload.id);
    }
  }

  async #remove({ id }: Upload): Promise<void> {
    this.#sizes.delete(id);
    this.#hashes.delete(id);
    for (const kind of ["json", "part"] as const) await rm(this.#file(id, kind), { force: true });
  }

  async #load(id: string): Promise<Upload | undefined> {
    try {
      const { org_id, repository } = JSON.parse(await readFile(this.#file(id, "json"), "utf8")) as Upload;
      return { id, org_id, repository, size: (await stat(this.#file(id, "part"))).size };
    } catch {
      return undefined;
    }
  }

  #file(id: string, kind: "json" | "part"): string {
    return join(this.#parts.dir, `${id}.${kind}`);
  }
}

/** The `Range` header of an upload: the received bytes. */
export const rangeOf = ({ size }: Pick<Upload, "size">): string => `0-${Math.max(0, size - 1)}`;
