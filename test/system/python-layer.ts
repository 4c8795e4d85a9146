import { cpSync } from "node:fs";
import { join } from "node:path";
import { programLayer } from "../rootfs.ts";

export const PYTHON = "/usr/bin/python3.11";

/** Debian's Python with its library, as a layer of an image. */
export function pythonLayer(dir: string): string {
  programLayer(dir, PYTHON, "python3");
  const library = "/usr/lib/python3.11";
  const skip = /\/(test|idlelib|ensurepip|lib2to3|distutils|__pycache__)(\/|$)/;
  cpSync(library, join(dir, library), { recursive: true, filter: (file) => !skip.test(file) });
  return dir;
}
