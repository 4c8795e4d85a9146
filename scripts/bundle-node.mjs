// The SQLite node as files that need nothing of the project, for machines of any image: `bundle-node.mjs FOLDER`. Made by
// the platform when the first machine with a node starts, and by `npm run pack`. Only node: imports, and esbuild.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { esbuild } from "./bundle-cli.mjs";

/** The program, and the files that it starts threads from. */
const ENTRIES = ["main.ts", "database/check-thread.ts", "database/checkpoint-thread.ts"];
/** Where a module names the file of a thread, it is beside the bundle. */
const THREAD = /"\.{1,2}\/(?:[\w-]+\/)*([\w-]+-thread)\.ts"/g;

/** Texts by file name. */
export function bundleNode(root) {
  const folder = mkdtempSync(join(tmpdir(), "hangar-bundle-"));
  try {
    esbuild(root, [
      ...ENTRIES.map((file) => `src/replication/${file}`),
      ...["--bundle", "--platform=node", "--format=cjs", "--target=node24", "--legal-comments=inline"],
      // Shorter, but with the names that a stack trace shows.
      ...["--minify-whitespace", "--minify-syntax", "--entry-names=[name]", "--out-extension:.js=.cjs"],
      ...["--define:import.meta.url=sourceUrl", "--define:import.meta.dirname=__dirname"],
      `--banner:js=const sourceUrl=require("node:url").pathToFileURL(__filename).href;`,
      ...[`--outdir=${folder}`, "--log-level=error"],
    ]);
    const named = new Set(ENTRIES.map((file) => basename(file, ".ts")));
    return Object.fromEntries(
      readdirSync(folder).map((name) => {
        const text = readFileSync(join(folder, name), "utf8").replaceAll(THREAD, (whole, thread) => {
          if (!named.has(thread)) throw new Error(`${whole} is a thread that ENTRIES does not name`);
          return `"./${thread}.cjs"`;
        });
        return [name, text];
      }),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) {
  const root = join(import.meta.dirname, "..");
  for (const [name, text] of Object.entries(bundleNode(root))) writeFileSync(join(process.argv[2], name), text);
}
