/**
 * Unpacks a layer into a folder of its own, in overlayfs' format. Nothing is ever written outside that folder:
 * `..` is refused, an absolute path begins at the folder, and a link in the middle of a path is resolved as if the
 * folder were the root. No other process writes there meanwhile, so a checked path stays valid.
 *
 * Preserved: owners, modes, times, hard links. Left out: devices, everything below /dev, /proc and /sys
 * (kernel-folders.ts), and extended attributes (overlayfs takes orders from some of them; file capabilities mean
 * nothing on a `nosuid` mount).
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readlinkSync,
  rmSync,
  type Stats,
  statfsSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { isKernelFolder, isKernelPath } from "./kernel-folders.ts";
import { makeFifo, makeOpaque, makeWhiteout } from "./libc.ts";
import type { ImageLimits } from "./limits.ts";
import { LayerFault } from "./refusal.ts";
import type { EntryType, TarEntry, TarSink } from "./tar.ts";

/** Result of unpacking a layer. */
export interface TreeFacts {
  entries: number;
  /** Total size of its files. */
  bytes: number;
  /** Devices, and entries below /dev, /proc and /sys, that were skipped. */
  left_out: number;
  /** Hides all layers below; overlayfs cannot mark this at the root. */
  opaque_root: boolean;
  /** Other opaque directories; absent when there are too many to list. */
  opaque?: string[];
}

type TreeLimits = Pick<
  ImageLimits,
  "tree_bytes" | "tree_entries" | "name_bytes" | "link_hops" | "disk_kept_bytes" | "opaque_listed"
>;

/** An entry being created. */
interface Making {
  path: string;
  entry: TarEntry;
  /** Target of a hard link. */
  target: string;
  /** What existed at the path. */
  before: Stats | undefined;
}

const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";
/** Interval between checks of free disk space. */
const LOOK_BYTES = 64 * 1024 * 1024;
/** Kernel errors that mean an invalid name or link. */
const SHAPES = new Set(["ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ELOOP", "EINVAL", "EMLINK", "ENAMETOOLONG"]);
const MAX_ID = 0xff_ff_ff_fe;

export class Tree implements TarSink {
  readonly #root: Buffer;
  readonly #limits: TreeLimits;
  /** Known real directories, so that their path is not checked again. */
  readonly #folders = new Set<string>([""]);
  readonly #times = new Map<string, number>();
  /** Skipped devices; hard links to them are skipped too. */
  readonly #devices = new Set<string>();
  readonly facts: TreeFacts = { entries: 0, bytes: 0, left_out: 0, opaque_root: false, opaque: [] };
  #file: { fd: number; entry: TarEntry } | undefined;
  #look_at = 0;

  /** `root` is an empty folder. */
  constructor(root: string, limits: TreeLimits) {
    this.#root = Buffer.from(root);
    this.#limits = limits;
    // The default for a layer that does not list its root.
    chmodSync(root, 0o755);
  }

  entry(entry: TarEntry): void {
    this.#closeFile();
    this.facts.entries++;
    if (this.facts.entries > this.#limits.tree_entries)
      throw new LayerFault(`it has more than ${this.#limits.tree_entries} entries (limit tree_entries)`);
    if (this.facts.bytes + entry.size > this.#limits.tree_bytes)
      throw new LayerFault(`it unpacks to more than ${this.#limits.tree_bytes} bytes (limit tree_bytes)`);
    if (entry.uid > MAX_ID || entry.gid > MAX_ID) throw new LayerFault(`${shown(entry.path)} has an invalid owner id`);
    const names = this.#namesOf(entry.path);
    const name = names.pop();
    try {
      if (name === undefined) this.#rootEntry(entry);
      else if (name.startsWith(WHITEOUT)) this.#whiteout(names, name);
      else this.#put(`${this.#folder(names, entry.path)}/${name}`, entry);
    } catch (thrown) {
      // A name that no file system accepts is an error of the layer; a full or broken disk is not.
      const { code = "" } = thrown as { code?: string };
      if (!SHAPES.has(code)) throw thrown;
      throw new LayerFault(`${shown(entry.path)} cannot be made: ${code}`, { cause: thrown });
    }
  }

  data(chunk: Buffer): void {
    if (!this.#file) return;
    this.facts.bytes += chunk.length;
    for (let at = 0; at < chunk.length; ) at += writeSync(this.#file.fd, chunk, at);
    if (this.facts.bytes >= this.#look_at) this.#lookAtDisk();
  }

  /** Finishes the last entries. */
  end(): void {
    this.#closeFile();
    // Last, because every file created in a directory changes its time. Only known directories: the path of a replaced
    // one may lead out of the tree by now.
    for (const [path, mtime] of this.#times) {
      if (this.#folders.has(path)) utimesSync(this.#path(path), mtime, mtime);
    }
  }

  /** Closes the file being written, because the rest will not arrive. */
  abandon(): void {
    if (this.#file) closeSync(this.#file.fd);
    this.#file = undefined;
  }

  #rootEntry(entry: TarEntry): void {
    if (entry.type !== "directory") throw new LayerFault("its root is not a folder");
    this.#dress("", entry);
  }

  #put(path: string, entry: TarEntry): void {
    const make = this.#makers[entry.type];
    if (!make) this.#devices.add(path);
    if (!make || isLeftOut(path, entry)) {
      this.facts.left_out++;
      return;
    }
    // Resolved first: a link to itself, or to what it replaces, must not remove its target.
    const target = entry.type === "hardlink" ? this.#linked(entry) : "";
    if (this.#devices.has(target)) {
      this.#devices.add(path);
      this.facts.left_out++;
      return;
    }
    if (target === path) return;
    if (target.startsWith(`${path}/`))
      throw new LayerFault(`${shown(entry.path)} is a hard link into what it replaces`);
    const before = this.#stat(path);
    if (before && entry.type !== "directory") this.#remove(path);
    make({ path, entry, target, before });
    this.#devices.delete(path);
  }

  /** Creates entries by type. Devices are not created. */
  readonly #makers: Partial<Record<EntryType, (making: Making) => void>> = {
    directory: ({ path, entry, before }) => this.#putFolder(path, entry, before),
    file: ({ path, entry }) => this.#openFile(path, entry),
    hardlink: ({ path, target }) => linkSync(this.#path(target), this.#path(path)),
    symlink: ({ path, entry }) => this.#putSymlink(path, entry),
    fifo: ({ path, entry }) => {
      makeFifo(this.#path(path), entry.mode);
      this.#dress(path, entry);
    },
  };

  #putFolder(path: string, entry: TarEntry, before: Stats | undefined): void {
    if (!before?.isDirectory()) {
      if (before) this.#remove(path);
      mkdirSync(this.#path(path), 0o700);
      // The lower entry was removed in this layer; this is a new directory of the same name.
      if (before && isWhiteout(before)) this.#opaque(path);
    }
    this.#folders.add(path);
    this.#dress(path, entry);
  }

  #openFile(path: string, entry: TarEntry): void {
    const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;
    const fd = openSync(this.#path(path), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600);
    this.#file = { fd, entry };
  }

  #closeFile(): void {
    if (!this.#file) return;
    const { fd, entry } = this.#file;
    this.#file = undefined;
    try {
      fchownSync(fd, entry.uid, entry.gid);
      // After chown, which clears the setuid bit.
      fchmodSync(fd, entry.mode);
      futimesSync(fd, entry.mtime, entry.mtime);
    } finally {
      closeSync(fd);
    }
  }

  #putSymlink(path: string, entry: TarEntry): void {
    if (entry.link === "") throw new LayerFault(`${shown(entry.path)} is a link to nothing`);
    symlinkSync(bytes(entry.link), this.#path(path));
    lchownSync(this.#path(path), entry.uid, entry.gid);
    lutimesSync(this.#path(path), entry.mtime, entry.mtime);
  }

  /** The file in this tree that a hard link refers to. */
  #linked({ path, link }: TarEntry): string {
    const names = this.#namesOf(link);
    const name = names.pop();
    const target = name === undefined ? "" : `${this.#folder(names, link)}/${name}`;
    if (this.#devices.has(target)) return target;
    if (isKernelPath(target)) {
      const why = "and what is below /dev, /proc and /sys is left out of images";
      throw new LayerFault(`${shown(path)} is a hard link to ${shown(link)}, ${why}`);
    }
    const found = target === "" ? undefined : this.#stat(target);
    if (!found || found.isDirectory() || isWhiteout(found))
      throw new LayerFault(`${shown(path)} is a hard link to ${shown(link)}, which is no file of this layer`);
    return target;
  }

  #opaque(folder: string): void {
    makeOpaque(this.#path(folder));
    const { opaque } = this.facts;
    const name = bytes(folder).toString();
    if (!opaque || opaque.includes(name)) return;
    if (opaque.length < this.#limits.opaque_listed) opaque.push(name);
    else delete this.facts.opaque;
  }

  /** `.wh.name` removes `name` of the layers below; `.wh..wh..opq` hides everything below in this directory. */
  #whiteout(names: string[], name: string): void {
    const folder = this.#folder(names, [...names, name].join("/"));
    const hidden = name.slice(WHITEOUT.length);
    if (isKernelPath(folder) || isKernelFolder(`${folder}/${hidden}`)) {
      this.facts.left_out++;
      return;
    }
    if (name === OPAQUE) {
      if (folder === "") this.facts.opaque_root = true;
      else this.#opaque(folder);
      return;
    }
    // Other names with this double prefix are aufs metadata.
    if (hidden.startsWith(WHITEOUT)) return;
    if (hidden === "" || hidden === "." || hidden === "..")
      throw new LayerFault(`${shown(name)} hides nothing that can be`);
    const path = `${folder}/${hidden}`;
    const before = this.#stat(path);
    // Entries of this layer itself are not hidden, only those of lower directories with the same name.
    if (before?.isDirectory()) this.#opaque(path);
    else if (!before) makeWhiteout(this.#path(path));
  }

  /** Sets owner, mode and time of entries not written through a descriptor. */
  #dress(path: string, { uid, gid, mode, mtime }: TarEntry): void {
    chownSync(this.#path(path), uid, gid);
    chmodSync(this.#path(path), mode);
    this.#times.set(path, mtime);
  }

  #namesOf(path: string): string[] {
    const names = path.split("/").filter((name) => name !== "" && name !== ".");
    for (const name of names) {
      if (name === "..") throw new LayerFault(`${shown(path)} points outside the layer`);
      if (name.length > this.#limits.name_bytes)
        throw new LayerFault(`a name has ${name.length} bytes (limit name_bytes is ${this.#limits.name_bytes})`);
    }
    return names;
  }

  /** Resolves a directory within the tree as root, creating missing parts. */
  #folder(names: readonly string[], path: string): string {
    const segments = [...names];
    let at = "";
    let hops = 0;
    for (let name = segments.shift(); name !== undefined; name = segments.shift()) {
      if (name === "..") {
        at = at.slice(0, Math.max(0, at.lastIndexOf("/")));
        continue;
      }
      const next = `${at}/${name}`;
      // Nothing is ever created below these, so there is nothing to check.
      if (this.#folders.has(next) || isKernelPath(next)) {
        at = next;
        continue;
      }
      const found = this.#stat(next);
      if (found?.isSymbolicLink()) {
        if (++hops > this.#limits.link_hops)
          throw new LayerFault(`${shown(path)} goes through too many links (limit link_hops)`);
        const link = readlinkSync(this.#path(next), "latin1");
        segments.unshift(...link.split("/").filter((part) => part !== "" && part !== "."));
        if (link.startsWith("/")) at = "";
        continue;
      }
      this.#enter(next, found, path);
      at = next;
    }
    return at;
  }

  #enter(path: string, found: Stats | undefined, fullPath: string): void {
    if (found && !found.isDirectory() && !isWhiteout(found))
      throw new LayerFault(`${shown(fullPath)} goes through ${shown(path)}, which is no folder`);
    if (!found?.isDirectory()) {
      if (found) this.#remove(path);
      mkdirSync(this.#path(path), 0o755);
      chmodSync(this.#path(path), 0o755);
      if (found) this.#opaque(path);
    }
    this.#folders.add(path);
  }

  #remove(path: string): void {
    rmSync(this.#path(path), { recursive: true, force: true });
    if (!this.#folders.has(path)) return;
    for (const folder of this.#folders) {
      if (folder === path || folder.startsWith(`${path}/`)) this.#folders.delete(folder);
    }
  }

  #stat(path: string): Stats | undefined {
    return lstatSync(this.#path(path), { throwIfNoEntry: false });
  }

  #path(path: string): Buffer {
    return Buffer.concat([this.#root, bytes(path)]);
  }

  #lookAtDisk(): void {
    this.#look_at = this.facts.bytes + LOOK_BYTES;
    const { bavail, bsize } = statfsSync(this.#root);
    if (bavail * bsize < this.#limits.disk_kept_bytes)
      throw Object.assign(new Error("the disk is nearly full (limit disk_kept_bytes)"), { code: "ENOSPC" });
  }
}

/** Of /dev, /proc and /sys only the directories themselves are created, as mount points. */
const isLeftOut = (path: string, { type }: TarEntry): boolean =>
  isKernelPath(path) && !(isKernelFolder(path) && type === "directory");

const bytes = (path: string): Buffer => Buffer.from(path, "latin1");
const isWhiteout = (stat: Stats): boolean => stat.isCharacterDevice() && stat.rdev === 0;

/** A path for messages: shortened, with control characters escaped. */
export const shown = (path: string): string => JSON.stringify(Buffer.from(path, "latin1").toString().slice(0, 120));
