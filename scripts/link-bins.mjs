// npm 9 and 10 drop .bin/node when two platform packages declare the same bin, and no npm links the
// root package's own command. Both links are put (back) here, so `node` is the pinned one in every npm
// script and `npx hangar` works from the project's root.
import { existsSync, lstatSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const modules = join(dirname(dirname(fileURLToPath(import.meta.url))), "node_modules");
const nodePackage = `node-${process.platform}-${process.arch}`;

/** Makes node_modules/.bin/<name> point at `target` (relative to .bin) when `target` exists. */
function link(name, target) {
  const bin = join(modules, ".bin");
  if (!existsSync(join(bin, target))) return;
  mkdirSync(bin, { recursive: true });
  const path = join(bin, name);
  if (lstatSync(path, { throwIfNoEntry: false })) rmSync(path);
  symlinkSync(target, path);
}

link("node", `../${nodePackage}/bin/node`);
link("hangar", "../../bin/hangar.mjs");
