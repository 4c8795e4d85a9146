#!/bin/sh
":" //; me=$0; case $me in /*) [ -L "$me" ] && me=$(readlink -f -- "$me") ;; *) me=$(readlink -f -- "$me") ;; esac; for node in "${me%/*/*}"/node_modules/node-*/bin/node; do [ -x "$node" ] && exec "$node" --v8-pool-size=1 "$me" "$@"; done; exec node "$me" "$@"
// The command. A shell reads the line above and becomes the pinned Node 24, where there is one; to Node it is a comment
// (that is why Biome does not format this file).
// So `hangar` is one Node process, whatever Node the box has. Starting more than one thread for V8 takes a tenth of the time
// of a short command, which is over before they have anything to do.
import module from "node:module";

// Not imported: an import loads all parts of a module of Node, and that takes longer than most commands.
const require = module.createRequire(import.meta.url);
const { existsSync, readFileSync, realpathSync, statSync } = require("node:fs");
const { dirname, join } = require("node:path");
const { fileURLToPath } = require("node:url");

const root = dirname(dirname(realpathSync(fileURLToPath(import.meta.url))));
const program = join(root, "src/cli/main.ts");
const pinned = join(root, `node_modules/node-${process.platform}-${process.arch}/bin/node`);
const isCheckout = existsSync(program) && program.endsWith(".ts");

if (Number(process.versions.node.split(".")[0]) >= 24) {
  const cache = cacheFolder();
  const bundle = isCheckout ? await checkoutBundle(join(cache, "cli")) : join(root, "dist/cli.cjs");
  if (!runCode(bundle)) {
    // Sources are compiled once, as for `npm start`.
    if (cache) module.enableCompileCache(join(cache, "compile"));
    if (bundle && existsSync(bundle)) require(bundle);
    else await source();
  }
} else {
  // For a start with an older Node. A checkout installs its own Node; a package does not.
  if (!existsSync(pinned))
    stop(
      isCheckout
        ? "its packages are not installed yet; run `npm start` or `npm ci` in its folder first"
        : `Node 24 or later is needed; this is ${process.version}, ${process.execPath}`,
    );
  const { spawn } = require("node:child_process");
  const words = [fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  // By the IPC channel the child notices when this process is killed, and exits as well.
  const child = spawn(pinned, words, { stdio: ["inherit", "inherit", "inherit", "ipc"] });
  for (const name of ["SIGTERM", "SIGHUP"]) process.on(name, () => child.kill(name));
  // A terminal gives it to both.
  process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
  child.on("error", (error) => stop(error.message));
  child.on("exit", (status, signal) => process.exit(status ?? (signal === "SIGINT" ? 130 : 143)));
}

/** Runs the bundle from V8's code of it; false when there is none, or it is another Node's. */
function runCode(bundle = "") {
  const code = bundle.replace(/\.cjs$/, ".code");
  if (code === bundle || !existsSync(code)) return false;
  let text, cachedData;
  try {
    [text, cachedData] = [readFileSync(bundle, "latin1"), readFileSync(code)];
  } catch {
    // Another command found changed sources and has replaced the bundle meanwhile.
    return false;
  }
  const { Script } = require("node:vm");
  const script = new Script(module.wrap(text), { filename: bundle, cachedData });
  if (script.cachedDataRejected) return false;
  const cli = { exports: {} };
  script.runInThisContext()(cli.exports, module.createRequire(bundle), cli, bundle, dirname(bundle));
  return true;
}

function stop(text) {
  process.stderr.write(`hangar: ${text}\n`);
  process.exit(1);
}

/** Where others cannot write: what is in it is run. */
function cacheFolder() {
  if (isCheckout) return join(root, "node_modules/.cache");
  const { XDG_CACHE_HOME, HOME } = process.env;
  return XDG_CACHE_HOME ? join(XDG_CACHE_HOME, "hangar") : HOME && join(HOME, ".cache/hangar");
}

/** One file of all sources, made anew when one of them has changed; undefined when it cannot be made. */
async function checkoutBundle(folder) {
  try {
    const { name, marks } = JSON.parse(readFileSync(join(folder, "bundle.json"), "utf8"));
    const isSame = ([file, mark]) => {
      const { mtimeMs, size } = statSync(`${root}/${file}`);
      return mark === `${mtimeMs} ${size}`;
    };
    if (Object.entries(marks).every(isSame)) return join(folder, name);
  } catch {
    // There is no bundle yet, or a source was removed.
  }
  try {
    const { refreshBundle } = await import("../scripts/bundle-cli.mjs");
    return refreshBundle(root, folder);
  } catch {
    return undefined;
  }
}

async function source() {
  if (!isInstalled("commander"))
    stop("its packages are not installed yet; run `npm start` or `npm ci` in its folder first");
  await import(program);
}

function isInstalled(name) {
  try {
    return Boolean(import.meta.resolve(name));
  } catch {
    return false;
  }
}
