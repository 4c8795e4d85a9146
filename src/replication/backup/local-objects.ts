import { copyFile, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import type { ObjectStore } from "./object-store.ts";

/** Objects as files below a directory: another disk, or a mounted share. */
export class LocalObjects implements ObjectStore {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  async put(key: string, path: string): Promise<void> {
    const target = join(this.#dir, key);
    await mkdir(dirname(target), { recursive: true });
    const fresh = `${target}.new`;
    await copyFile(path, fresh);
    await synced(fresh);
    await rename(fresh, target);
    await synced(dirname(target));
  }

  async get(key: string, path: string): Promise<boolean> {
    try {
      await copyFile(join(this.#dir, key), path);
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  async list(prefix: string): Promise<string[]> {
    try {
      const entries = await readdir(this.#dir, { recursive: true, withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile() && !entry.name.endsWith(".new"))
        .map((entry) => relative(this.#dir, join(entry.parentPath, entry.name)))
        .filter((key) => key.startsWith(prefix))
        .sort();
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  async delete(key: string): Promise<void> {
    await rm(join(this.#dir, key), { force: true });
  }
}

async function synced(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
