import { constants } from "node:fs";
import { copyFile, type FileHandle, mkdir, open, readdir, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ImageReader, ImageWriter, Inventory } from "#volumes/disk.ts";
import { extentsOf } from "./kernel.ts";
import { run } from "./programs.ts";

type Kind = "volumes" | "points";
const SUFFIX = ".img";

/**
 * Sparse files named by id, in a directory of one file system. A file gets its name when it is complete and durable;
 * before that it is in `new`, which is emptied at start.
 */
export class Images {
  readonly dir: string;
  /** Whether copies share blocks (reflink). */
  reflink = false;

  constructor(dir: string) {
    this.dir = dir;
  }

  async start(): Promise<void> {
    await rm(join(this.dir, "new"), { recursive: true, force: true });
    for (const kind of ["new", "volumes", "points"])
      await mkdir(join(this.dir, kind), { recursive: true, mode: 0o700 });
    this.reflink = await canReflink(join(this.dir, "new"));
  }

  path(kind: Kind, id: string): string {
    return join(this.dir, kind, `${id}${SUFFIX}`);
  }

  async has(kind: Kind, id: string): Promise<boolean> {
    return await stat(this.path(kind, id)).then(
      () => true,
      () => false,
    );
  }

  /** Creates a file of this size, lets `make` fill it, and gives it its name. An existing one stays. */
  async make(kind: Kind, id: string, bytes: number, make: (file: string) => Promise<void>): Promise<void> {
    if (await this.has(kind, id)) return;
    const fresh = join(this.dir, "new", `${kind}-${id}${SUFFIX}`);
    await rm(fresh, { force: true });
    try {
      await sized(fresh, bytes);
      await make(fresh);
      await sync(fresh);
      await rename(fresh, this.path(kind, id));
      await sync(join(this.dir, kind));
    } catch (error) {
      await rm(fresh, { force: true });
      throw error;
    }
  }

  /** Copies `from` over a file opened by `make`: by reflink, or without its holes. */
  async copy(from: string, to: string): Promise<void> {
    if (this.reflink) return await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
    if (process.platform !== "linux") return await copyFile(from, to);
    await run("cp", ["--sparse=auto", "--reflink=never", from, to]);
  }

  async reader(kind: Kind, id: string): Promise<ImageReader> {
    const path = this.path(kind, id);
    const { size } = await stat(path);
    const extents = await extentsOf(path, size);
    // Last, so that no later failure leaves it open.
    const file = await open(path, "r");
    return {
      size,
      extents,
      async read(offset, length) {
        const bytes = Buffer.allocUnsafe(Math.min(length, size - offset));
        for (let at = 0; at < bytes.length; ) {
          const { bytesRead } = await file.read(bytes, at, bytes.length - at, offset + at);
          if (bytesRead === 0) throw new Error(`${path} ends before ${offset + bytes.length}`);
          at += bytesRead;
        }
        return bytes;
      },
      [Symbol.asyncDispose]: () => file.close(),
    };
  }

  /** Enlarges the file to at least this size. */
  async enlarge(kind: Kind, id: string, bytes: number): Promise<void> {
    await using file = await open(this.path(kind, id), "r+");
    if ((await file.stat()).size < bytes) await file.truncate(bytes);
  }

  /** Its size, and its usage on disk. */
  async size(kind: Kind, id: string): Promise<{ bytes: number; taken: number }> {
    const { size, blocks } = await stat(this.path(kind, id));
    return { bytes: size, taken: blocks * 512 };
  }

  async remove(kind: Kind, id: string): Promise<void> {
    await rm(this.path(kind, id), { force: true });
    await sync(join(this.dir, kind));
  }

  async inventory(): Promise<Inventory> {
    const { bsize, blocks, bavail } = await statfs(this.dir);
    const [volumes, points] = await Promise.all([this.#sizes("volumes"), this.#sizes("points")]);
    return { volumes, points, total_bytes: bsize * blocks, free_bytes: bsize * bavail };
  }

  async #sizes(kind: Kind): Promise<Map<string, number>> {
    const sizes = new Map<string, number>();
    for (const name of await readdir(join(this.dir, kind))) {
      const found = await stat(join(this.dir, kind, name)).catch(() => undefined);
      if (found && name.endsWith(SUFFIX)) sizes.set(name.slice(0, -SUFFIX.length), found.blocks * 512);
    }
    return sizes;
  }
}

/** Opens an existing file for positioned writes. */
export async function withWriter(path: string, work: (image: ImageWriter) => Promise<void>): Promise<void> {
  await using file = await open(path, "r+");
  await work({ write: (offset, bytes) => writeAll(file, bytes, offset) });
}

async function writeAll(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, at, bytes.length - at, offset + at);
    at += bytesWritten;
  }
}

export async function canReflink(dir: string): Promise<boolean> {
  const [from, to] = [join(dir, "reflink-from"), join(dir, "reflink-to")];
  try {
    await writeFile(from, Buffer.alloc(4096, 1));
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  } finally {
    await Promise.all([rm(from, { force: true }), rm(to, { force: true })]);
  }
}

export async function sync(path: string): Promise<void> {
  await using file = await open(path, "r");
  await file.sync();
}

/** Creates an empty file of this size. */
async function sized(path: string, bytes: number): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.truncate(bytes);
}
