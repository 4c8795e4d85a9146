/** The upload of an import: a file as it is, or a folder as a tar with owners, modes and hard links. */
import { createReadStream } from "node:fs";
import { lstat, open, readdir, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { type PackedEntry, TAR_END, tarHeader, tarPadding } from "#archive/tar.ts";
import { UsageError } from "../verb.ts";

export interface Package {
  /** What was found there, for display. */
  kind: string;
  chunks: AsyncIterable<Uint8Array>;
}

export async function packageOf(path: string, onLeftOut: (what: string) => void): Promise<Package> {
  const found = await stat(path).catch(() => undefined);
  if (!found) throw new UsageError(`${path} does not exist`);
  if (found.isFile()) return { kind: "archive", chunks: createReadStream(path, { highWaterMark: 256 * 1024 }) };
  if (!found.isDirectory()) throw new UsageError(`${path} is neither a file nor a folder`);
  const layout = await stat(join(path, "oci-layout")).catch(() => undefined);
  return { kind: layout ? "OCI layout" : "root file system", chunks: pack(Buffer.from(path), onLeftOut) };
}

/** These folders are sent empty. */
const KERNEL_FOLDERS = new Set(["/dev", "/proc", "/sys"]);

async function* pack(root: Buffer, onLeftOut: (what: string) => void): AsyncIterable<Buffer> {
  /** Hard links: the first entry has the content. */
  const linked = new Map<string, string>();
  const waiting = [""];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = Buffer.concat([root, Buffer.from(path, "latin1")]);
    const entry = await entryOf(file, `.${path}`, linked);
    if (!entry) {
      onLeftOut(path);
      continue;
    }
    if (entry.type === "file") yield* content(file, entry);
    else yield tarHeader(entry);
    // A machine mounts its own there; on a running system their content is endless.
    if (entry.type === "directory" && !KERNEL_FOLDERS.has(path)) {
      const names = await readdir(file, { encoding: "latin1" as "utf8" });
      const here = path;
      waiting.push(
        ...names
          .sort()
          .reverse()
          .map((child) => `${here}/${child}`),
      );
    }
  }
  yield TAR_END;
}

/** The entry of a file, or undefined for what an archive does not carry. */
async function entryOf(file: Buffer, path: string, linked: Map<string, string>): Promise<PackedEntry | undefined> {
  const found = await lstat(file);
  const common = { mode: found.mode & 0o7777, uid: found.uid, gid: found.gid, mtime: found.mtimeMs / 1000, size: 0 };
  if (found.isDirectory()) return { ...common, path: `${path}/`, type: "directory" };
  if (found.isSymbolicLink())
    return { ...common, path, type: "symlink", link: await readlink(file, "latin1" as "utf8") };
  if (!found.isFile()) return undefined;
  const key = `${found.dev}:${found.ino}`;
  const first = found.nlink > 1 ? linked.get(key) : undefined;
  if (first !== undefined) return { ...common, path, type: "hardlink", link: first };
  linked.set(key, path);
  return { ...common, path, type: "file", size: found.size };
}

/** Exactly as many bytes as the header says, also when the file changes meanwhile. */
async function* content(file: Buffer, entry: PackedEntry): AsyncIterable<Buffer> {
  yield tarHeader(entry);
  const handle = await open(file, "r");
  try {
    let left = entry.size;
    while (left > 0) {
      const chunk = Buffer.alloc(Math.min(left, 256 * 1024));
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, entry.size - left);
      // A file that became shorter is filled with zeroes; `chunk` has them already.
      yield bytesRead === 0 ? chunk : chunk.subarray(0, bytesRead);
      left -= bytesRead === 0 ? chunk.length : bytesRead;
    }
    yield tarPadding(entry.size);
  } finally {
    await handle.close();
  }
}
