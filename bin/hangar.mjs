#!/usr/bin/env node
// The command. Runs with the pinned Node 24, whatever started it.
import { spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(realpathSync(fileURLToPath(import.meta.url))));
const program = join(root, "src/cli/main.ts");
const pinned = join(root, `node_modules/node-${process.platform}-${process.arch}/bin/node`);

const own = Number(process.versions.node.split(".")[0]) >= 24;

// Before anything that an old Node does not know. A checkout brings a Node of its own; a package does not.
if (!own && !existsSync(pinned) && !existsSync(join(root, "scripts/bootstrap.mjs")))
  stop(`Node 24 or later is needed; this is ${process.version}, ${process.execPath}`);
if (own ? !isInstalled("commander") : !existsSync(join(root, "node_modules/commander")))
  stop("its packages are not installed yet; run `npm start` or `npm ci` in its folder first");
// Types are stripped and sources compiled once, as for `npm start`: a fourth of the time of every later command.
const cache = existsSync(join(root, "node_modules")) ? join(root, "node_modules/.cache/compile") : undefined;
if (own) {
  if (cache) module.enableCompileCache(cache);
  await import(program);
} else {
  const { status, signal } = spawnSync(pinned, [program, ...process.argv.slice(2)], {
    stdio: "inherit",
    env: { ...(cache ? { NODE_COMPILE_CACHE: cache } : {}), ...process.env },
  });
  process.exit(status ?? (signal === "SIGINT" ? 130 : 143));
}

function stop(text) {
  process.stderr.write(`hangar: ${text}\n`);
  process.exit(1);
}

function isInstalled(name) {
  try {
    return Boolean(import.meta.resolve(name));
  } catch {
    return false;
  }
}
