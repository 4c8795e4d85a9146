/** The npm package, without Node, which its user has already. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Packing } from "../pack.ts";
import { runTool } from "./run-tool.ts";
import { fillStage, packageFile } from "./stage.ts";

export function makeNpmPackage({ to, version, work }: Packing): string {
  const stage = join(work, "npm");
  mkdirSync(stage);
  const file = packageFile(version);
  const optional = Object.entries(file.optionalDependencies).filter(([name]) => !/^(node-|@esbuild\/)/.test(name));
  fillStage(stage, { ...file, optionalDependencies: Object.fromEntries(optional) });
  const packed = runTool("npm", ["pack", "--silent", "--pack-destination", to], { cwd: stage });
  return join(to, packed.trim());
}
