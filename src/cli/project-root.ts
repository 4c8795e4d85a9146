import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The root of this installation: a checkout, a package in node_modules, or the files of the Debian package or tarball.
 * Derived from this file, which is as deep as `main.ts`: in the bundle, every file has the path of the bundle.
 */
export const projectRoot = (): string => resolve(dirname(fileURLToPath(import.meta.url)), "../..");
