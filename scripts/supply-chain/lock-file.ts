/** What package-lock.json says: which packages are installed, with what licence and hash. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

export interface LockEntry {
  version: string;
  integrity?: string;
  resolved?: string;
  license?: string;
  dev?: boolean;
  optional?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

export interface LockFile {
  name: string;
  version: string;
  lockfileVersion: number;
  /** By folder: `node_modules/a/node_modules/b`; the project itself is ``. */
  packages: Record<string, LockEntry>;
}

export const readLock = (): LockFile => JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as LockFile;

export interface LockedPackage extends LockEntry {
  name: string;
  /** Its folder. */
  at: string;
}

/** Everything but the project itself. */
export const packagesOf = ({ packages }: LockFile): LockedPackage[] =>
  Object.entries(packages)
    .filter(([at]) => at !== "")
    .map(([at, entry]) => ({ ...entry, at, name: at.slice(at.lastIndexOf("node_modules/") + "node_modules/".length) }));
