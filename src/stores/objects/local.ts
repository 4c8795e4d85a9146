import { copyFile, link, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { checkKey, type ObjectBody, type ObjectInfo, type ObjectRange, type ObjectStore } from "#core/objects.ts";

/** Incomplete objects; no key begins with a dot alone, so none is hidden. */
const UNFINISHED = ".new";
/** Older files were left by dead processes. */
const STALE_MS = 24 * 3600 * 1000;

/** Objects as files in a directory: local disk or mounted share. */
export class LocalObjects implements ObjectStore {
  readonly place: string;
  readonly #dir: string;
  #fresh = 0;

  constructor(dir: string) {
    this.#dir = dir;
    this.place = dir;
  }

  async put(key: string, body: ObjectBody, how: { if_absent?: boolean } = {}): Promise<boolean> {
    checkKey(key);
    const target = join(this.#dir, key);
    const fresh = join(
      this.#dir,
      UNFINISHED,
      `${process.pid}-${++this.#fresh}-${key.replaceAll("/", "~").slice(-100)}`,
    );
    await mkdir(dirname(fresh), { recursive: true });
    try {
      await writeWhole(fresh, body);
      await makeFolder(dirname(target));
      if (how.if_absent) await link(fresh, target);
      else await rename(fresh, target);
      await sync(dirname(target));
      return true;
    } catch (error) {
      if (how.if_absent && codeOf(error) === "EEXIST") return false;
      throw error;
    } finally {
      await rm(fresh, { force: true });
    }
  }

  async get(key: string, range?: ObjectRange): Promise<Buffer | undefined> {
    checkKey(key);
    const file = await unlessMissing(open(join(this.#dir, key)));
    if (!file) return undefined;
    try {
      if (!range) return await file.readFile();
      const { size } = await file.stat();
      const part = Buffer.alloc(Math.max(0, Math.min(range.length, size - range.offset)));
      if (part.length > 0) await file.read(part, 0, part.length, range.offset);
      return part;
    } finally {
      await file.close();
    }
  }

  async getFile(key: string, path: string): Promise<boolean> {
    checkKey(key);
    return (await unlessMissing(copyFile(join(this.#dir, key), path).then(() => true))) ?? false;
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    checkKey(key);
    const found = await unlessMissing(stat(join(this.#dir, key)));
    return found?.isFile() ? { key, size: found.size } : undefined;
  }

  async list(prefix: string): Promise<ObjectInfo[]> {
    // Only the directory of the whole prefix is walked.
    const top = prefix.includes("/") ? dirname(`${prefix}x`) : "";
    const entries =
      (await unlessMissing(readdir(join(this.#dir, top), { recursive: true, withFileTypes: true }))) ?? [];
    const keys = entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(this.#dir, join(entry.parentPath, entry.name)).replaceAll(sep, "/"))
      .filter((key) => key.startsWith(prefix) && !key.startsWith(`${UNFINISHED}/`))
      .sort();
    const found = await Promise.all(keys.map((key) => this.head(key)));
    return found.filter((info) => info !== undefined);
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      checkKey(key);
      await rm(join(this.#dir, key), { force: true });
    }
  }

  /** Removes incomplete files of killed processes. */
  async sweep(now_ms: number): Promise<void> {
    const dir = join(this.#dir, UNFINISHED);
    for (const name of (await unlessMissing(readdir(dir))) ?? []) {
      const file = join(dir, name);
      const found = await unlessMissing(stat(file));
      if (found && found.mtimeMs < now_ms - STALE_MS) await rm(file, { force: true });
    }
  }
}

async function writeWhole(path: string, body: ObjectBody): Promise<void> {
  // Uses reflinks where possible.
  if (!(body instanceof Uint8Array)) await copyFile(body.file, path);
  await using file = await open(path, body instanceof Uint8Array ? "w" : "r");
  if (body instanceof Uint8Array) await file.writeFile(body);
  await file.sync();
}

/** Creates directories durably, up to an existing one. */
async function makeFolder(dir: string): Promise<void> {
  const first = await mkdir(dir, { recursive: true });
  if (first === undefined) return;
  for (let at = dir; at.length >= dirname(first).length; at = dirname(at)) {
    await sync(at);
    if (at === dirname(at)) return;
  }
}

async function sync(path: string): Promise<void> {
  await using file = await open(path, "r");
  await file.sync();
}

/** Not `instanceof Error`: under Jest, Node's errors belong to another realm. */
const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR" || codeOf(error) === "EISDIR") return undefined;
    throw error;
  }
}
