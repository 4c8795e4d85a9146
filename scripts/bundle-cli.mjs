// The `hangar` command as one file of plain JavaScript, which Node loads several times faster than 150 modules. Made by
// bin/hangar.mjs when sources have changed, and by `npm run pack`. Only node: imports, and the esbuild program.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const require = createRequire(import.meta.url);

/** Modules of Node that a short command hardly needs: they are loaded when one of their functions is called. */
const LATER = [
  "child_process",
  "crypto",
  "http",
  "https",
  "os",
  "readline",
  "readline/promises",
  "stream/consumers",
  "timers/promises",
];

/** A module with the same names as one of Node's, which is loaded with the first of them that is asked for. */
const laterModule = (name) => `const load = () => process.getBuiltinModule("node:${name}");
for (const name of ${JSON.stringify(Object.keys(require(name)))})
  Object.defineProperty(exports, name, { enumerable: true, get: () => load()[name] });
`;

/** The text of the bundle of `main`, and the files that it was made of; `place` is where `main` is from the bundle's folder. */
export function bundleCli(root, main, place) {
  const folder = mkdtempSync(join(tmpdir(), "hangar-bundle-"));
  try {
    const aliases = LATER.map((name) => {
      const file = join(folder, `${name.replace("/", "-")}.cjs`);
      writeFileSync(file, laterModule(name));
      return `--alias:node:${name}=${file}`;
    });
    const [out, meta] = [join(folder, "cli.cjs"), join(folder, "meta.json")];
    const url = `require("node:url").pathToFileURL(require("node:path").join(__dirname,${JSON.stringify(place)})).href`;
    esbuild(root, [
      main,
      ...["--bundle", "--platform=node", "--format=cjs", "--target=node24", "--legal-comments=inline"],
      // Shorter, but with the names that a stack trace shows.
      ...["--minify-whitespace", "--minify-syntax"],
      // Otherwise import() stays, and a module of Node that is loaded by it has all its parts loaded.
      "--supported:dynamic-import=false",
      // Our modules look for files beside themselves.
      ...["--define:import.meta.url=sourceUrl", `--banner:js=const sourceUrl=${url};`],
      ...aliases,
      ...[`--outfile=${out}`, `--metafile=${meta}`, "--log-level=error"],
    ]);
    const files = Object.keys(JSON.parse(readFileSync(meta, "utf8")).inputs).filter((file) => !file.startsWith(".."));
    // The same sources make the same bundle: commands that make it at the same time do not remove each other's.
    const text = readFileSync(out, "utf8").replaceAll(basename(folder), "hangar-bundle");
    // esbuild escapes all else; what is read as one byte per character is read faster.
    if (/[^\0-\x7f]/.test(text)) throw new Error("the bundle is not plain ASCII");
    return { text, files };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function esbuild(root, args) {
  const program = require.resolve(`@esbuild/${process.platform}-${process.arch}/bin/esbuild`);
  const { status, stderr, error } = spawnSync(program, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`esbuild failed: ${error?.message ?? stderr}`);
}

/** A command that runs most of what others do, and gets no response. */
const TRIED = ["machines", "list", "--url", "http://127.0.0.1:9"];
/** As bin/hangar.mjs starts it: V8 takes code that was made with the same flags. */
const FLAGS = ["--v8-pool-size=1"];

/** V8's code of the bundle for this Node, in a file beside it. Without it the command takes longer, and works. */
export function keepCode(node, bundle) {
  const code = bundle.replace(/\.cjs$/, ".code");
  const fresh = `${code}.${process.pid}`;
  const env = { PATH: process.env.PATH, HOME: "/nonexistent", HANGAR_TOKEN: "none" };
  const keeper = new URL("keep-code.mjs", import.meta.url).pathname;
  const { status } = spawnSync(node, [...FLAGS, keeper, bundle, fresh, ...TRIED], { env, cwd: "/", stdio: "ignore" });
  if (status === 0) renameSync(fresh, code);
}

/** What of a file tells that it has changed; bin/hangar.mjs compares it. */
function markOf(file) {
  const { mtimeMs, size } = statSync(file);
  return `${mtimeMs} ${size}`;
}

/** Makes the bundle of a checkout; the list of its files comes last, so that nobody finds it without the bundle. */
export function refreshBundle(root, folder) {
  const { text, files } = bundleCli(root, "src/cli/main.ts", "../../../src/cli/main.ts");
  const name = `${createHash("sha256").update(text).digest("hex").slice(0, 16)}.cjs`;
  mkdirSync(folder, { recursive: true });
  const put = (file, content) => {
    writeFileSync(join(folder, `${file}.${process.pid}`), content);
    renameSync(join(folder, `${file}.${process.pid}`), join(folder, file));
  };
  put(name, text);
  keepCode(process.execPath, join(folder, name));
  const looked = [...files, "package.json", "bin/hangar.mjs", "scripts/bundle-cli.mjs", "scripts/keep-code.mjs"];
  put(
    "bundle.json",
    JSON.stringify({ name, marks: Object.fromEntries(looked.map((file) => [file, markOf(join(root, file))])) }),
  );
  for (const old of readdirSync(folder))
    if (/\.(cjs|code)$/.test(old) && !old.startsWith(name.replace("cjs", "")))
      rmSync(join(folder, old), { force: true });
  return join(folder, name);
}
