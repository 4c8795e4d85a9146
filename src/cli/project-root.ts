import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Where this program is: a checkout, a package in node_modules, or what the Debian package and the tarball unpack. Found from
 * this file, which is as deep as `main.ts`: in the bundle, every file of the command takes itself to be that one.
 */
export const projectRoot = (): string => resolve(dirname(fileURLToPath(import.meta.url)), "../..");
