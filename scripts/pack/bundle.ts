/** Everything that runs the platform in one folder: the packed sources, the npm packages and the pinned Node. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { keepCode } from "../bundle-cli.mjs";
import type { Packing } from "../pack.ts";
import { runTool } from "./run-tool.ts";
import { fillStage, packageFile, root } from "./stage.ts";

/** The command, wherever the folder is, or in the folder that is named: each program that a shell starts takes time. */
export const launcher = (arch: string, folder = '"$(dirname "$(dirname "$(readlink -f "$0")")")"'): string => `#!/bin/sh
root=${folder}
exec "$root/node_modules/node-linux-${arch}/bin/node" --v8-pool-size=1 "$root/bin/hangar.mjs" "$@"
`;

/** Of the Node package what runs; headers are for compilers. */
const NOT_NEEDED = ["include", "share", "CHANGELOG.md", "README.md"];

/** Answers the folder. */
export function makeBundle({ work, arch, version }: Packing): string {
  const folder = join(work, "bundle/hangar");
  mkdirSync(folder, { recursive: true });
  // As the lock file says, for the system it will run on, and no program of theirs is run here.
  for (const name of ["package.json", "package-lock.json"]) cpSync(join(root, name), join(folder, name));
  const target = ["--os=linux", `--cpu=${arch}`, "--libc=glibc"];
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  runTool("npm", ["ci", "--omit=dev", "--ignore-scripts", ...target, ...quiet], { cwd: folder });
  for (const name of NOT_NEEDED)
    rmSync(join(folder, `node_modules/node-linux-${arch}`, name), { recursive: true, force: true });
  // It makes the command's one file, which is made by now.
  rmSync(join(folder, "node_modules/@esbuild"), { recursive: true, force: true });
  for (const name of ["package.json", "package-lock.json"]) rmSync(join(folder, name));
  rmSync(join(folder, "node_modules/.package-lock.json"), { force: true });
  fillStage(folder, packageFile(version));
  // One for another processor cannot be run here.
  if (arch === process.arch)
    keepCode(join(folder, `node_modules/node-linux-${arch}/bin/node`), join(folder, "dist/cli.cjs"));
  writeFileSync(join(folder, "bin/hangar"), launcher(arch), { mode: 0o755 });
  return folder;
}

/** For systems without Debian's packages. */
export function makeTarball({ to, arch, version }: Packing, bundle: string): string {
  const file = join(to, `hangar-${version}-linux-${arch}.tar.gz`);
  runTool("tar", ["--owner=0", "--group=0", "--numeric-owner", "-czf", file, "-C", join(bundle, ".."), "hangar"]);
  return file;
}
