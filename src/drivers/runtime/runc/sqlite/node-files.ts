/**
 * The files that run SQLite nodes, once per host and read-only in every machine with a node:
 *
 *   node       the Node.js that runs the platform
 *   ld.so      its loader, and `lib/` its libraries
 *   main.cjs   the node as one file, with the files of its threads beside it
 *
 * Each version has a folder of its own, since a suspended machine resumes with the files that it began with.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { programFiles } from "../../../images/elf.ts";
import { nodeBundle } from "./node-bundle.ts";

/** glibc before 2.34 loads them by name, to look up hosts. */
const NAME_SERVICES = ["libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2"];

export class SqliteNodeFiles {
  readonly #dir: string;
  #current: Promise<string> | undefined;

  /** `<data dir>/sqlite-node`. */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /** The folder of a version. */
  path(version: string): string {
    return join(this.#dir, version);
  }

  /** This platform's version, made at the first use. Versions that are not `used` are removed then. */
  current(used: () => readonly string[]): Promise<string> {
    this.#current ??= this.#make(used).catch((thrown: unknown) => {
      // The next start tries again.
      this.#current = undefined;
      throw thrown;
    });
    return this.#current;
  }

  async #make(used: () => readonly string[]): Promise<string> {
    const files = sharedFiles(process.execPath);
    const bundle = await nodeBundle();
    const version = fingerprint(files, bundle);
    mkdirSync(this.#dir, { recursive: true, mode: 0o711 });
    if (!existsSync(this.path(version))) {
      const fresh = this.path(`${version}.new`);
      rmSync(fresh, { recursive: true, force: true });
      fill(fresh, files, bundle);
      renameSync(fresh, this.path(version));
    }
    const kept = new Set([version, ...used()]);
    for (const old of readdirSync(this.#dir))
      if (!kept.has(old)) rmSync(this.path(old), { recursive: true, force: true });
    return version;
  }
}

/** Names in the folder, and the files of this host. */
function sharedFiles(node: string): Map<string, string> {
  const needed = [...programFiles(node)];
  const libraries = needed.filter(([target]) => target.startsWith("/usr/lib/"));
  const [, loader = ""] = needed.find(([target]) => !target.startsWith("/usr/lib/")) ?? [];
  if (loader === "") throw new Error(`${node} names no loader, so it cannot run in machines of other images`);
  const libc = libraries.find(([target]) => basename(target).startsWith("libc.so"))?.[1] ?? loader;
  const services = NAME_SERVICES.map((name) => join(dirname(libc), name)).filter(existsSync);
  return new Map([
    ["node", node],
    ["ld.so", loader],
    ...services.map((file): [string, string] => [`lib/${basename(file)}`, file]),
    ...libraries.map(([target, file]): [string, string] => [`lib/${basename(target)}`, file]),
  ]);
}

function fingerprint(files: ReadonlyMap<string, string>, bundle: ReadonlyMap<string, string>): string {
  const hash = createHash("sha256");
  for (const [name, text] of bundle) hash.update(`${name} ${text.length}\n${text}`);
  for (const [name, file] of files) {
    const { size, mtimeMs } = statSync(file);
    hash.update(`${name} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

function fill(folder: string, files: ReadonlyMap<string, string>, bundle: ReadonlyMap<string, string>): void {
  for (const at of [folder, join(folder, "lib")]) {
    mkdirSync(at, { recursive: true });
    // Regardless of umask: every machine reads them as another user.
    chmodSync(at, 0o755);
  }
  for (const [name, file] of files) bring(file, join(folder, name));
  for (const [name, text] of bundle) {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o644);
  }
}

const READABLE = 0o555;

/** A link costs no disk and no memory. On another file system, or of a file that others may not run, it is a copy. */
function bring(file: string, to: string): void {
  if ((statSync(file).mode & READABLE) === READABLE) {
    try {
      linkSync(file, to);
      return;
    } catch {
      // EXDEV, or a file system without links.
    }
  }
  copyFileSync(file, to, constants.COPYFILE_FICLONE);
  chmodSync(to, 0o755);
}
