/**
 * Stores the files of build contexts by SHA-256 and by app, so that known files are not uploaded again. Each
 * organization has one folder. Files are renamed into place; incomplete ones in `incoming` are removed at the next
 * start.
 */
import { createHash } from "node:crypto";
import { constants, mkdirSync, rmSync, statSync } from "node:fs";
import { chmod, copyFile, link, mkdir, open, readdir, rm, stat, statfs, symlink, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { BuildLimits } from "./limits.ts";
import type { ContextEntry, ContextOwner } from "./types.ts";

interface Parts {
  dir: string;
  clock: Clock;
  limits: BuildLimits;
}

/** Disk usage of an organization's files. */
interface Used {
  files: number;
  bytes: number;
}

const HEADER = 512;
const LOOK_BYTES = 64 * 2 ** 20;
const BLOCK_BYTES = 4096;
/** Files checked before yielding to the event loop. */
const BATCH = 500;
const EXPIRE_MS = 3_600_000;

/** A file of one byte takes a block, and its name some of another. */
const diskBytes = (size: number): number => (Math.ceil(size / BLOCK_BYTES) || 1) * BLOCK_BYTES;

export class ContextFiles {
  readonly #parts: Parts;
  readonly #used = new Map<string, Promise<Used>>();
  #made = 0;
  #expire_at = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    rmSync(join(parts.dir, "incoming"), { recursive: true, force: true });
    mkdirSync(join(parts.dir, "incoming"), { recursive: true, mode: 0o700 });
  }

  /** The missing files, and the bytes of the others, each as often as it is listed. */
  async measure(owner: ContextOwner, digests: readonly string[]): Promise<{ missing: string[]; bytes: number }> {
    const sizes = new Map<string, number | undefined>();
    for (const digest of digests) {
      if (sizes.has(digest)) continue;
      sizes.set(digest, statSync(this.#file(owner, digest), { throwIfNoEntry: false })?.size);
      if (sizes.size % BATCH === 0) await turn();
    }
    return {
      missing: [...sizes].filter(([, size]) => size === undefined).map(([digest]) => digest),
      bytes: digests.reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0),
    };
  }

  /** Receives a tar of files named by their digest. Returns their number and bytes. */
  async receive(owner: ContextOwner, upload: AsyncIterable<Uint8Array>): Promise<{ files: number; bytes: number }> {
    const { org_id } = owner;
    await mkdir(join(this.#parts.dir, org_id), { recursive: true, mode: 0o700 });
    await using reader = new Reader(upload);
    const taken = { files: 0, bytes: 0 };
    const used = await this.#usedBy(org_id);
    for (let header = await reader.exactly(HEADER); header?.[0]; header = await reader.exactly(HEADER)) {
      const { digest, size } = readHeader(header, this.#parts.limits);
      this.#count(used, size);
      let isNew = false;
      try {
        isNew = await this.#take(owner, digest, size, reader);
      } finally {
        if (!isNew) uncount(used, size);
      }
      taken.files++;
      taken.bytes += size;
    }
    return taken;
  }

  /** Reserves the size before the upload, so that concurrent uploads share the remaining space. */
  #count(used: Used, size: number): void {
    const { org_files, org_files_bytes } = this.#parts.limits;
    const hint = "leave out what the build does not need with .dockerignore";
    if (used.files >= org_files)
      fail("limit_reached", `build contexts of this organization have ${org_files} files (limit org_files)`, { hint });
    if (used.bytes + diskBytes(size) > org_files_bytes)
      fail(
        "limit_reached",
        `build contexts of this organization take more than ${org_files_bytes} bytes (limit org_files_bytes)`,
        { hint },
      );
    used.files++;
    used.bytes += diskBytes(size);
  }

  /** False when the file exists already. */
  async #take(owner: ContextOwner, digest: string, size: number, reader: Reader): Promise<boolean> {
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
      return await this.#keep(part, this.#file(owner, digest));
    } finally {
      await rm(part, { force: true });
    }
  }

  async #keep(part: string, file: string): Promise<boolean> {
    const now = this.#parts.clock.now() / 1000;
    try {
      await link(part, file);
      return true;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
      await utimes(file, now, now);
      return false;
    }
  }

  async #checkRoom(coming = 0): Promise<void> {
    const { bavail, bsize } = await statfs(this.#parts.dir);
    if (bavail * bsize - coming < this.#parts.limits.disk_kept_bytes)
      fail("storage_full", "the disk has no room for the build context (limit disk_kept_bytes)", { retry_after_s: 60 });
  }

  /** Looked up once; afterwards it is counted. */
  #usedBy(org_id: string): Promise<Used> {
    const known = this.#used.get(org_id) ?? this.#measure(org_id);
    this.#used.set(org_id, known);
    return known;
  }

  async #measure(org_id: string): Promise<Used> {
    const dir = join(this.#parts.dir, org_id);
    const used: Used = { files: 0, bytes: 0 };
    for (const name of await readdir(dir)) {
      const found = await stat(join(dir, name)).catch(() => undefined);
      if (!found) continue;
      used.files++;
      used.bytes += diskBytes(found.size);
    }
    return used;
  }

  /** Writes the context to a new folder. Fails with `build_files_missing` when a file is not here. */
  async write(
    owner: ContextOwner,
    entries: readonly ContextEntry[],
    target: string,
    signal: AbortSignal,
  ): Promise<void> {
    const now = this.#parts.clock.now() / 1000;
    let unchecked = LOOK_BYTES;
    await mkdir(target, { recursive: true, mode: 0o755 });
    // Links last: nothing is ever written through one.
    const ordered = [...entries].sort((a, b) => Number(a.link !== undefined) - Number(b.link !== undefined));
    for (const { path, sha256, link: to, mode } of ordered) {
      signal.throwIfAborted();
      const at = join(target, path);
      await mkdir(dirname(at), { recursive: true, mode: 0o755 });
      if (to !== undefined) await symlink(to, at);
      else if (sha256 === undefined) await mkdir(at, { recursive: true, mode: 0o755 });
      else {
        const from = this.#file(owner, sha256);
        const { size } = await stat(from).catch(() => missingFiles(1));
        unchecked += diskBytes(size);
        if (unchecked >= LOOK_BYTES) await this.#checkRoom(size);
        unchecked %= LOOK_BYTES;
        await copyFile(from, at, constants.COPYFILE_FICLONE);
        await chmod(at, ((mode ?? 0o644) & 0o777) | 0o444);
        // Marks it as recently used.
        await utimes(from, now, now).catch(() => {});
      }
    }
  }

  /** Removes files that no build has used for long; runs at most once an hour. */
  async expire(): Promise<void> {
    const { dir, clock, limits } = this.#parts;
    const now = clock.now();
    if (now < this.#expire_at) return;
    this.#expire_at = now + EXPIRE_MS;
    for (const org_id of await readdir(dir)) {
      if (org_id === "incoming") continue;
      const used = await this.#usedBy(org_id);
      for (const name of await readdir(join(dir, org_id))) {
        const file = join(dir, org_id, name);
        const found = await stat(file).catch(() => undefined);
        if (!found || found.mtimeMs >= now - limits.file_kept_ms) continue;
        await rm(file, { force: true });
        uncount(used, found.size);
      }
    }
  }

  #file({ org_id, app_id }: ContextOwner, digest: string): string {
    return join(this.#parts.dir, org_id, `${app_id}.${digest}`);
  }
}

function uncount(used: Used, size: number): void {
  used.files--;
  used.bytes -= diskBytes(size);
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

/** Reads exact lengths from a stream of chunks. */
class Reader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Discards the unread rest. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#source.return?.();
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
