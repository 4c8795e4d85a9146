/**
 * The files of build contexts, by the SHA-256 of their bytes and by organization: what is here is not sent again. A file
 * is there when it is under its name; what a crash left in `incoming` is removed at the next start.
 */
import { createHash } from "node:crypto";
import { constants, existsSync, mkdirSync, rmSync } from "node:fs";
import { chmod, copyFile, mkdir, open, readdir, rename, rm, stat, statfs, symlink, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { BuildLimits } from "./limits.ts";
import type { ContextEntry } from "./types.ts";

interface Parts {
  dir: string;
  clock: Clock;
  limits: BuildLimits;
}

const HEADER = 512;
const LOOK_BYTES = 64 * 2 ** 20;

export class ContextFiles {
  readonly #parts: Parts;
  #made = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    rmSync(join(parts.dir, "incoming"), { recursive: true, force: true });
    mkdirSync(join(parts.dir, "incoming"), { recursive: true, mode: 0o700 });
  }

  /** Those of the files that are not here. */
  missing(org_id: string, digests: readonly string[]): string[] {
    return [...new Set(digests)].filter((digest) => !existsSync(this.#file(org_id, digest)));
  }

  /** Takes in a tar of files that are named by their digest. Answers how many, and their bytes. */
  async receive(org_id: string, upload: AsyncIterable<Uint8Array>): Promise<{ files: number; bytes: number }> {
    await mkdir(join(this.#parts.dir, org_id), { recursive: true, mode: 0o700 });
    const reader = new Reader(upload);
    const taken = { files: 0, bytes: 0 };
    let used = await this.#used(org_id);
    for (let header = await reader.exactly(HEADER); header?.[0]; header = await reader.exactly(HEADER)) {
      const { digest, size } = readHeader(header, this.#parts.limits);
      used += size;
      if (used > this.#parts.limits.org_files_bytes)
        fail(
          "limit_reached",
          `build contexts of this organization have more than ${this.#parts.limits.org_files_bytes} bytes (limit org_files_bytes)`,
          {
            hint: "leave out what the build does not need with .dockerignore",
          },
        );
      await this.#take(org_id, digest, size, reader);
      taken.files++;
      taken.bytes += size;
    }
    return taken;
  }

  async #take(org_id: string, digest: string, size: number, reader: Reader): Promise<void> {
    const part = join(this.#parts.dir, "incoming", String(this.#made++));
    try {
      const hash = createHash("sha256");
      await using file = await open(part, "wx", 0o600);
      let unchecked = LOOK_BYTES;
      for await (const chunk of reader.content(size)) {
        unchecked += chunk.length;
        if (unchecked >= LOOK_BYTES) await this.#checkRoom();
        unchecked %= LOOK_BYTES;
        hash.update(chunk);
        await file.writeFile(chunk);
      }
      if (hash.digest("hex") !== digest) fail("build_refused", `the bytes sent for ${digest} have another SHA-256`);
      await file.sync();
      await rename(part, this.#file(org_id, digest));
    } finally {
      await rm(part, { force: true });
    }
  }

  async #checkRoom(): Promise<void> {
    const { bavail, bsize } = await statfs(this.#parts.dir);
    if (bavail * bsize < this.#parts.limits.disk_kept_bytes)
      fail("storage_full", "the disk has no room for the build context (limit disk_kept_bytes)", { retry_after_s: 60 });
  }

  /** What all its files take; nothing is kept about them but they themselves. */
  async #used(org_id: string): Promise<number> {
    const dir = join(this.#parts.dir, org_id);
    const sizes = (await readdir(dir)).map(async (name) => (await stat(join(dir, name)).catch(() => undefined))?.size);
    return (await Promise.all(sizes)).reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }

  /** Writes the context to a new folder. Fails with `build_files_missing` when a file is not here. */
  async write(org_id: string, entries: readonly ContextEntry[], target: string): Promise<number> {
    const now = this.#parts.clock.now() / 1000;
    let bytes = 0;
    await mkdir(target, { recursive: true, mode: 0o755 });
    // Links last: nothing is ever written through one.
    const ordered = [...entries].sort((a, b) => Number(a.link !== undefined) - Number(b.link !== undefined));
    for (const { path, sha256, link, mode } of ordered) {
      const at = join(target, path);
      await mkdir(dirname(at), { recursive: true, mode: 0o755 });
      if (link !== undefined) await symlink(link, at);
      else if (sha256 === undefined) await mkdir(at, { recursive: true, mode: 0o755 });
      else {
        const from = this.#file(org_id, sha256);
        await copyFile(from, at, constants.COPYFILE_FICLONE).catch(() => missingFiles(1));
        await chmod(at, ((mode ?? 0o644) & 0o777) | 0o444);
        bytes += (await stat(at)).size;
        // Used just now: it stays.
        await utimes(from, now, now).catch(() => {});
      }
    }
    return bytes;
  }

  /** Removes files that no build named for long. */
  async expire(): Promise<void> {
    const { dir, clock, limits } = this.#parts;
    const oldest = clock.now() - limits.file_kept_ms;
    for (const org_id of await readdir(dir)) {
      if (org_id === "incoming") continue;
      for (const name of await readdir(join(dir, org_id))) {
        const file = join(dir, org_id, name);
        const found = await stat(file).catch(() => undefined);
        if (found && found.mtimeMs < oldest) await rm(file, { force: true });
      }
    }
  }

  #file(org_id: string, digest: string): string {
    return join(this.#parts.dir, org_id, digest);
  }
}

export function missingFiles(count: number): never {
  fail("build_files_missing", `${count} files of the build context are not stored here`, {
    hint: "upload them with POST /v1/apps/:app_name/builds/files, then start the build again",
  });
}

function readHeader(header: Buffer, limits: BuildLimits): { digest: string; size: number } {
  const digest = header.toString("latin1", 0, 100).replace(/\0.*$/s, "");
  const octal = header.toString("latin1", 124, 136).replace(/[\0 ].*$/s, "");
  if (!/^[0-9a-f]{64}$/.test(digest) || !/^[0-7]+$/.test(octal))
    fail("build_refused", "the upload is not a tar of files that are named by their SHA-256");
  const size = Number.parseInt(octal, 8);
  if (size > limits.file_bytes)
    fail("payload_too_large", `a file has ${size} bytes; at most ${limits.file_bytes} are taken (limit file_bytes)`);
  return { digest, size };
}

/** Reads exact lengths from a body that comes in pieces of any length. */
class Reader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Undefined at the end. */
  async exactly(count: number): Promise<Buffer | undefined> {
    const pieces: Buffer[] = [];
    for (let left = count; left > 0; ) {
      const piece = await this.#next(left);
      if (!piece) return left === count ? undefined : fail("build_refused", "the upload ended in the middle of a file");
      pieces.push(piece);
      left -= piece.length;
    }
    return Buffer.concat(pieces);
  }

  /** The content of an entry; what fills its last block is skipped. */
  async *content(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      const piece = (await this.#next(left)) ?? fail("build_refused", "the upload ended in the middle of a file");
      left -= piece.length;
      yield piece;
    }
    await this.exactly((HEADER - (size % HEADER)) % HEADER);
  }

  async #next(most: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#source.next();
      if (next.done) return undefined;
      this.#rest = Buffer.from(next.value);
    }
    const piece = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }
}
