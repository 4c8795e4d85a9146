/** Atomic and durable files of the image store. */
import { randomUUID } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Directories of the image store, under `images/` in the data dir. */
export interface Layout {
  root: string;
  /** Manifests, indexes and configs, by the digest of their bytes. */
  blobs: string;
  /** Unpacked layers by diff id; the record beside a directory marks it as complete. */
  layers: string;
  /** Names and their digests: `<owner>/<name>.json`. */
  names: string;
  /** Which machine uses which image. */
  holds: string;
  /** Unfinished data. Emptied at start, except for partial downloads. */
  ingest: string;
}

export function layoutOf(root: string): Layout {
  const folder = (name: string): string => join(root, name);
  return {
    root,
    blobs: folder("blobs"),
    layers: folder("layers"),
    names: folder("names"),
    holds: folder("holds"),
    ingest: folder("ingest"),
  };
}

/** Private, because layers contain setuid files that no user of this host may run. */
export async function makeLayout(layout: Layout): Promise<void> {
  for (const folder of Object.values(layout) as string[]) await mkdir(folder, { recursive: true, mode: 0o700 });
}

/** A unique name in `ingest`. */
export const temporary = ({ ingest }: Layout, kind: string): string => join(ingest, `${kind}-${randomUUID()}`);

/** Writes a temporary file, syncs it, and renames it. */
export async function writeWhole(layout: Layout, file: string, content: string | Uint8Array): Promise<void> {
  const fresh = temporary(layout, "file");
  try {
    const handle = await open(fresh, "wx", 0o600);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await settle(fresh, file);
  } catch (thrown) {
    await rm(fresh, { force: true });
    throw thrown;
  }
}

/**
 * Writes atomically but not durably, for data that a power cut may lose. Synchronous, because it delays every first
 * start, and four turns through the thread pool take longer.
 */
export function writeSoon(layout: Layout, file: string, content: string): void {
  const fresh = temporary(layout, "file");
  writeFileSync(fresh, content, { mode: 0o600, flag: "wx" });
  renameSync(fresh, file);
}

/** Renames a durable file to its place, durably. */
export async function settle(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  await rename(from, to);
  await syncFolder(dirname(to));
}

export async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, "r");
    await handle.sync();
  } finally {
    await handle?.close();
  }
}

/** The JSON of a file, or undefined when it does not exist. */
export async function readJson<T>(file: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as T;
  } catch (thrown) {
    if ((thrown as { code?: string }).code === "ENOENT") return undefined;
    throw thrown;
  }
}
