/**
 * What every package holds. Node runs our sources as they are, but not inside node_modules: there the types must be gone.
 * So every source is copied without them, with `.js` for `.ts` in the names it imports, beside the declarations of what
 * is public. Nothing is built into the checkout.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { bundleCli } from "../bundle-cli.mjs";
import { bundleNode } from "../bundle-node.mjs";

export const root = join(import.meta.dirname, "../..");

export interface Package {
  name: string;
  version: string;
  exports: Record<string, string>;
  dependencies: Record<string, string>;
  optionalDependencies: Record<string, string>;
  [field: string]: unknown;
}

/** Our own modules, wherever they are named in a text: in an import, for a thread, for another process. */
const OWN_MODULE = /"((?:[\w#./-]+))\.ts"/g;
const renamed = (source: string): string => source.replaceAll(OWN_MODULE, '"$1.js"');

const isTest = (name: string): boolean => /\.(test|suite)\.ts$|fixtures\.ts$/.test(name);

/** Copies a folder; sources lose their types, tests stay behind. */
function copy(folder: string, stage: string): void {
  for (const entry of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
    const from = join(entry.parentPath, entry.name);
    const to = join(stage, relative(root, from));
    if (!entry.isFile() || isTest(entry.name) || entry.name === "tsconfig.json") continue;
    mkdirSync(dirname(to), { recursive: true });
    if (entry.name.endsWith(".ts"))
      writeFileSync(to.replace(/\.ts$/, ".js"), renamed(stripTypeScriptTypes(readFileSync(from, "utf8"))));
    else if (entry.name.endsWith(".mjs") && folder === "bin")
      writeFileSync(to, renamed(readFileSync(from, "utf8")), { mode: 0o755 });
    else cpSync(from, to);
  }
}

/** The declarations of the public modules, and of those they name. */
function declare(entries: readonly string[], stage: string): void {
  const out = mkdtempSync(join(tmpdir(), "hangar-types-"));
  try {
    const project = join(out, "tsconfig.json");
    const compilerOptions = {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir: out,
      typeRoots: [join(root, "node_modules/@types")],
    };
    const files = entries.map((entry) => join(root, entry));
    const config = { extends: join(root, "tsconfig.json"), compilerOptions, files, include: [] };
    writeFileSync(project, JSON.stringify(config));
    const made = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", project], { encoding: "utf8" });
    if (made.status !== 0) throw new Error(`the declarations could not be made:\n${made.stdout}`);
    for (const name of reachable(entries, out)) {
      const source = readFileSync(join(out, name), "utf8");
      writeFileSync(join(stage, name), renamed(source));
    }
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

function reachable(entries: readonly string[], out: string): Set<string> {
  const declarationOf = (file: string): string => file.replace(/\.ts$/, ".d.ts");
  const found = new Set(entries.map((entry) => declarationOf(entry.replace(/^\.\//, ""))));
  for (const name of found) {
    for (const [, to = ""] of readFileSync(join(out, name), "utf8").matchAll(/"((?:[#.])[\w#./-]+\.ts)"/g))
      found.add(declarationOf(to.startsWith("#") ? `src/${to.slice(1)}` : join(dirname(name), to)));
  }
  return found;
}

/** The checkout's package file. */
export const ownPackage = (): Package => JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Package;

/** The same as others need it: no scripts, the packed files, and the version that is asked for. */
export function packageFile(version?: string): Package {
  const { scripts: _, devDependencies: __, private: ___, ...own } = ownPackage();
  const exports = Object.fromEntries(
    Object.entries(own.exports).map(([name, file]) => [
      name,
      { types: file.replace(/\.ts$/, ".d.ts"), default: file.replace(/\.ts$/, ".js") },
    ]),
  );
  return {
    ...(own as Package),
    version: version ?? own.version,
    engines: { node: ">=24" },
    exports: exports as unknown as Package["exports"],
  };
}

/** Puts everything but node_modules into an empty folder. */
export function fillStage(stage: string, file: Package): void {
  for (const folder of ["src", "web", "bin"]) copy(folder, stage);
  // Boards of the dashboard.
  cpSync(join(root, "docs/grafana"), join(stage, "docs/grafana"), { recursive: true });
  for (const text of ["README.md", "LICENSE", "NOTICE"]) cpSync(join(root, text), join(stage, text));
  declare([...new Set(Object.values(ownPackage().exports))], stage);
  mkdirSync(join(stage, "dist/db-node"), { recursive: true });
  for (const [name, code] of Object.entries(bundleNode(root))) writeFileSync(join(stage, "dist/db-node", name), code);
  const { text } = bundleCli(root, "src/cli/main.ts", "../src/cli/main.js");
  // The programs that the command starts have lost their types, too.
  writeFileSync(join(stage, "dist/cli.cjs"), renamed(text));
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(file, undefined, 2)}\n`);
}
