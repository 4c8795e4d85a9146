import type { Stats } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import type { ImageLayer } from "#machines/runtime/image-source.ts";
import { PROXY_LIMITS } from "../../limits.ts";

/** An entry in one of the layers. */
export interface Place {
  file: string;
  stats: Stats;
}

/** A merged directory: the directories of all layers that contribute to it, topmost first. */
type Folder = readonly string[];
/** Parent directories, root first, for `..` in symbolic links. */
type Trail = readonly Folder[];

/** A path step that no name can be. */
const ROOT = "/";

/**
 * Resolves paths in the layers of an image as overlayfs would. Symbolic links are read and resolved within the image
 * root, never by the kernel, because the platform may read every file of the host.
 */
export class LayerTree {
  readonly #root: Folder;
  readonly #opaque: ReadonlySet<string>;

  constructor(layers: readonly ImageLayer[]) {
    this.#root = layers.map(({ dir }) => dir);
    this.#opaque = new Set(layers.flatMap(({ dir, opaque }) => opaque.map((folder) => dir + folder)));
  }

  /** The entry at a path, if it is not a directory. */
  async find(path: string): Promise<Place | undefined> {
    let trail: Trail = [this.#root];
    const segments = names(path);
    let links = 0;
    for (let name = segments.shift(); name !== undefined; name = segments.shift()) {
      const found = await this.#step(trail, name);
      if (!found) return undefined;
      if (!("stats" in found)) trail = found;
      else if (!found.stats.isSymbolicLink()) return segments.length === 0 ? found : undefined;
      else if (++links > PROXY_LIMITS.static_links) return undefined;
      else segments.unshift(...steps(await readlink(found.file)));
    }
    return undefined;
  }

  async #step(trail: Trail, name: string): Promise<Trail | Place | undefined> {
    if (name === ROOT) return [this.#root];
    if (name === "..") return trail.length > 1 ? trail.slice(0, -1) : trail;
    const found = await this.#look(trail.at(-1) as Folder, name);
    return found && !("stats" in found) ? [...trail, found] : found;
  }

  /** Looks up a name in a directory: a merged directory, or the entry of the topmost layer that has it. */
  async #look(folder: Folder, name: string): Promise<Folder | Place | undefined> {
    const parts: string[] = [];
    for (const dir of folder) {
      const file = `${dir}/${name}`;
      const stats = await lstat(file).catch(unlessMissing);
      if (!stats) continue;
      if (!stats.isDirectory()) return parts.length > 0 ? parts : isWhiteout(stats) ? undefined : { file, stats };
      parts.push(file);
      if (this.#opaque.has(file)) break;
    }
    return parts.length > 0 ? parts : undefined;
  }
}

const names = (path: string): string[] => path.split("/").filter((name) => name !== "" && name !== ".");

/** The steps of a link target; an absolute one begins at the root. */
const steps = (link: string): string[] => [...(link.startsWith("/") ? [ROOT] : []), ...names(link)];

const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;

const MISSING = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG"]);

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (!MISSING.has(error.code ?? "")) throw error;
}
