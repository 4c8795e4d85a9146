/**
 * Serves npm packages to the browser: every module unbundled, with package names in its imports replaced by paths.
 * Resolved as bundlers do for browsers: by `exports` (browser, import), else `module`.
 */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, posix, relative } from "node:path";

type Exports = string | { readonly [condition: string]: Exports } | undefined;

interface Manifest {
  module?: string;
  exports?: Exports;
}

const CONDITIONS = [".", "browser", "import", "module", "default"];
/** Matches whole statements, because comments and strings may contain imports too. */
const SPECIFIER = /((?:^|[;}])\s*(?:import|export)\b[\w\s{},*$]*?\bfrom\s*|^import\s*)["']([\w@./-]+)["']/gm;

export class BrowserPackages {
  readonly #base: string;
  readonly #names: readonly string[];
  /** Served paths by package, and the files that belong to it. */
  readonly #entries = new Map<string, string>();
  readonly #files = new Map<string, string>();

  /** `base` is the served folder. */
  constructor(base: string, names: readonly string[]) {
    this.#base = base;
    this.#names = names;
  }

  /** The path of a package's entry; undefined for other packages. */
  served(name: string): string | undefined {
    return this.#names.includes(name) ? this.#entry(name, import.meta.url) : undefined;
  }

  /** All modules by their served path, with those that they import. */
  files(): Map<string, string> {
    for (const name of this.#names) this.#entry(name, import.meta.url);
    return this.#files;
  }

  #entry(name: string, from: string): string {
    const known = this.#entries.get(name);
    if (known) return known;
    const folder = folderOf(name, from);
    const { module, exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
    const entry = pick(exports) ?? module;
    if (!entry) throw new Error(`the package ${name} has no module for browsers`);
    const path = posix.join(this.#base, name, entry);
    this.#entries.set(name, path);
    this.#add(join(folder, entry), path);
    return path;
  }

  #add(file: string, path: string): void {
    if (this.#files.has(path)) return;
    // Registered first: modules may import each other.
    this.#files.set(path, "");
    const source = readFileSync(file, "utf8").replace(/^\/\/# sourceMappingURL=.*$/m, "");
    const rewritten = source.replaceAll(SPECIFIER, (_, before: string, wanted: string) => {
      const target = wanted.startsWith(".") ? this.#beside(file, path, wanted) : this.#entry(wanted, file);
      const found = posix.relative(posix.dirname(path), target);
      return `${before}"${found.startsWith(".") ? found : `./${found}`}"`;
    });
    this.#files.set(path, rewritten);
  }

  /** A relative import, which may leave out `.js` or `/index.js`. */
  #beside(file: string, path: string, wanted: string): string {
    const at = join(dirname(file), wanted);
    const found = [at, `${at}.js`, join(at, "index.js")].find((one) => existsSync(one) && one.endsWith(".js"));
    if (!found) throw new Error(`${path} imports ${wanted}, which does not exist`);
    const target = posix.join(posix.dirname(path), relative(dirname(file), found));
    this.#add(found, target);
    return target;
  }
}

/** The first condition that applies. */
function pick(exports: Exports): string | undefined {
  if (exports === undefined || typeof exports === "string") return exports;
  for (const condition of CONDITIONS) {
    const found = pick(exports[condition]);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Finds the folder of a package like Node, but ignores its `exports`. Its real path, because package managers that link
 * packages (pnpm) put their dependencies beside that.
 */
function folderOf(name: string, from: string): string {
  const folders = createRequire(from).resolve.paths(name) ?? [];
  const found = folders.map((folder) => join(folder, name)).find((folder) => existsSync(join(folder, "package.json")));
  if (!found) throw new Error(`the package ${name} is not installed`);
  return realpathSync(found);
}
