import type { Stats } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import type { ImageLayer } from "#machines/runtime/image-source.ts";
import { PROXY_LIMITS } from "../../limits.ts";

/** Something in one of the layers. */
export interface Place {
  file: string;
  stats: Stats;
}

/** A folder as all layers together make it: the folders of the layers that have part in it, topmost first. */
type Folder = readonly string[];
/** The folders on the way to one, the root first: `..` in a link goes back. */
type Trail = readonly Folder[];

/** A step that no name can be. */
const ROOT = "/";

/**
 * The layers of an image as overlayfs would show them. Links lead where they would inside the machine, never out of
 * the layers: each is read, and its way is walked from the image's own root. The platform may read every file of the
 * box, so nothing here follows a link by opening it.
 */
export class LayerTree {
  readonly #root: Folder;
  readonly #opaque: ReadonlySet<string>;

  constructor(layers: readonly ImageLayer[]) {
    this.#root = layers.map(({ dir }) => dir);
    this.#opaque = new Set(layers.flatMap(({ dir, opaque }) => opaque.map((folder) => dir + folder)));
  }

  /** What is at a path, when it is not a folder. */
  async find(path: string): Promise<Place | undefined> {
    let trail: Trail = [this.#root];
    const way = names(path);
    let links = 0;
    for (let name = way.shift(); name !== undefined; name = way.shift()) {
      const found = await this.#step(trail, name);
      if (!found) return undefined;
      if (!("stats" in found)) trail = found;
      else if (!found.stats.isSymbolicLink()) return way.length === 0 ? found : undefined;
      else if (++links > PROXY_LIMITS.static_links) return undefined;
      else way.unshift(...steps(await readlink(found.file)));
    }
    return undefined;
  }

  async #step(trail: Trail, name: string): Promise<Trail | Place | undefined> {
    if (name === ROOT) return [this.#root];
    if (name === "..") return trail.length > 1 ? trail.slice(0, -1) : trail;
    const found = await this.#look(trail.at(-1) as Folder, name);
    return found && !("stats" in found) ? [...trail, found] : found;
  }

  /** What a name in a folder is: a folder, or a single thing of the topmost layer that has it. */
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

/** The steps of a link: one that begins with a slash begins at the root. */
const steps = (link: string): string[] => [...(link.startsWith("/") ? [ROOT] : []), ...names(link)];

const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;

const MISSING = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG"]);

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (!MISSING.has(error.code ?? "")) throw error;
}
