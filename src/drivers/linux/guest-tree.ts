/** Reads and writes inside an untrusted tree: an image's root file system. */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  ftruncateSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname } from "node:path/posix";
import { CallError, openInRoot } from "./calls.ts";

const { O_CREAT, O_DIRECTORY, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
const O_PATH = 0o10000000;

export interface GuestFile {
  content: Uint8Array;
  mode: number;
  /** Owners in host ids. */
  uid: number;
  gid: number;
}

/** A root file system, held open: every path is resolved inside it. */
export class GuestTree implements Disposable {
  readonly #root: number;

  constructor(root: string) {
    this.#root = openSync(root, O_RDONLY | O_DIRECTORY);
  }

  [Symbol.dispose](): void {
    closeSync(this.#root);
  }

  /** The first `limit` bytes of a regular file; undefined when there is none. */
  read(path: string, limit: number): Buffer | undefined {
    let fd: number;
    try {
      // A FIFO in the image must not block us.
      fd = openInRoot(this.#root, path, O_RDONLY | O_NONBLOCK);
    } catch (thrown) {
      if (thrown instanceof CallError) return undefined;
      throw thrown;
    }
    try {
      const { size } = fstatSync(fd);
      if (!fstatSync(fd).isFile()) return undefined;
      const bytes = Buffer.alloc(Math.min(size, limit));
      return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0));
    } finally {
      closeSync(fd);
    }
  }

  /** Writes a file, resolving links inside the tree and creating directories. */
  write(path: string, { content, mode, uid, gid }: GuestFile): void {
    closeSync(this.#folder(dirname(path), uid, gid));
    const fd = this.#create(path);
    try {
      if (!fstatSync(fd).isFile()) throw new Error(`${path} is in the image and is not a file`);
      ftruncateSync(fd, 0);
      for (let at = 0; at < content.length; ) at += writeSync(fd, content, at);
      fchownSync(fd, uid, gid);
      fchmodSync(fd, mode);
    } finally {
      closeSync(fd);
    }
  }

  /** The directory exists; the target of a link with this name may not. */
  #create(path: string): number {
    try {
      return openInRoot(this.#root, path, O_WRONLY | O_CREAT | O_NONBLOCK, 0o600);
    } catch (thrown) {
      if (!(thrown instanceof CallError) || thrown.code !== "ENOENT") throw thrown;
      throw new Error(`${path} is a link in the image, to a place where there is nothing`, { cause: thrown });
    }
  }

  /** Writes a file at exactly this name: an existing link is replaced, not followed. */
  replace(path: string, file: GuestFile): void {
    const folder = this.#folder(dirname(path), file.uid, file.gid);
    try {
      const name = `/proc/self/fd/${folder}/${basename(path)}`;
      const there = lstatSync(name, { throwIfNoEntry: false });
      if (there?.isDirectory()) throw new Error(`${path} is a folder in the image`);
      if (there && !there.isFile()) unlinkSync(name);
    } finally {
      closeSync(folder);
    }
    this.write(path, file);
  }

  /** The type of the entry itself, without following links; undefined when there is none. */
  kind(path: string): "file" | "folder" | "link" | "other" | undefined {
    let fd: number;
    try {
      fd = openInRoot(this.#root, path, O_PATH | constants.O_NOFOLLOW);
    } catch (thrown) {
      if (thrown instanceof CallError) return undefined;
      throw thrown;
    }
    try {
      const stat = fstatSync(fd);
      if (stat.isSymbolicLink()) return "link";
      if (stat.isDirectory()) return "folder";
      return stat.isFile() ? "file" : "other";
    } finally {
      closeSync(fd);
    }
  }

  /** Resolves a path, as seen from inside. */
  where(path: string): string | undefined {
    try {
      const fd = openInRoot(this.#root, path, O_PATH);
      try {
        const root = readlinkSync(`/proc/self/fd/${this.#root}`);
        return readlinkSync(`/proc/self/fd/${fd}`).slice(root.length) || "/";
      } finally {
        closeSync(fd);
      }
    } catch {
      return undefined;
    }
  }

  /** Creates a link in the root, unless something has its name. */
  link(path: `/${string}`, target: string, uid: number, gid: number): void {
    if (this.kind(path) !== undefined) return;
    const name = `/proc/self/fd/${this.#root}/${basename(path)}`;
    symlinkSync(target, name);
    lchownSync(name, uid, gid);
  }

  /** Creates a directory and missing parents. */
  folder(path: string, uid: number, gid: number, mode = 0o755): void {
    closeSync(this.#folder(path, uid, gid, mode));
  }

  #folder(path: string, uid: number, gid: number, mode = 0o755): number {
    try {
      return openInRoot(this.#root, path, O_RDONLY | O_DIRECTORY);
    } catch (thrown) {
      if (!(thrown instanceof CallError) || thrown.code !== "ENOENT" || path === "/" || path === ".") throw thrown;
    }
    const above = this.#folder(dirname(path), uid, gid);
    try {
      // Created relative to an open directory, so no path component can be swapped.
      const made = `/proc/self/fd/${above}/${basename(path)}`;
      const there = lstatSync(made, { throwIfNoEntry: false });
      if (there?.isSymbolicLink())
        throw new Error(`${path} is a link in the image, to ${readlinkSync(made)}, where there is nothing`);
      mkdirSync(made, mode);
      chmodSync(made, mode);
      lchownSync(made, uid, gid);
    } finally {
      closeSync(above);
    }
    return openInRoot(this.#root, path, O_RDONLY | O_DIRECTORY);
  }
}
