#!/usr/bin/env node
// Runs before anything is installed, on whatever Node the system has (18 or later): only node: imports.
// Brings npm packages, the pinned Node and the system packages, then runs a program with that Node:
//   node scripts/bootstrap.mjs [--for=start|test|check|prove|bench|mutate|examples] --exec FILE [arguments]
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bringSystemPackages } from "./system-packages.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const options = process.argv.slice(2);
const execAt = options.indexOf("--exec");
const purpose = options.find((o) => o.startsWith("--for="))?.slice(6) ?? "start";
const program = execAt < 0 ? [] : options.slice(execAt + 1);

const say = (text) => process.stderr.write(`${text}\n`);

function stop(text) {
  say(text);
  process.exit(1);
}

function npm(args, cwd) {
  const [command, ...first] = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ["npm"];
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync(command, [...first, ...args, ...quiet], { cwd, stdio: ["ignore", 2, 2] });
  if (status !== 0) stop(`npm ${args.join(" ")} failed; see above.`);
}

/** Installs the packages of `folder` when its manifest is not the one they were installed from. */
function installPackages(folder, manifest, args) {
  const cwd = join(root, folder);
  const stamp = join(cwd, "node_modules/.installed-from");
  const want = createHash("sha256")
    .update(readFileSync(join(cwd, manifest)))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === want) return;
  say(`Installing npm packages of ${folder === "." ? "hangar" : folder} (first run, or they changed) …`);
  npm(args, cwd);
  writeFileSync(stamp, want);
}

/** The system packages that this purpose needs, with what is lost without each. */
function wantedSystemPackages() {
  const all = JSON.parse(readFileSync(join(root, "scripts/system-packages.json"), "utf8"));
  const groups = {
    start: ["runtime"],
    check: [],
    test: ["runtime", "test"],
    prove: ["runtime", "test", "prove"],
    bench: ["runtime", "test", "bench"],
  };
  return Object.assign({}, ...(groups[purpose] ?? []).map((group) => all[group]));
}

if (Number(process.versions.node.split(".")[0]) < 18)
  stop(`Node 18 or later is needed to start; this is ${process.version}.`);
installPackages(".", "package-lock.json", ["ci"]);
if (["check", "test", "prove"].includes(purpose)) {
  mkdirSync(join(root, "tools/node_modules"), { recursive: true });
  installPackages("tools", "package.json", ["install", "--no-save", "--no-package-lock"]);
}
/** Packages that one purpose alone needs. */
const apart = { mutate: "tools/mutate", examples: "tools/runners" }[purpose];
if (apart) installPackages(apart, "package.json", ["install", "--no-save", "--no-package-lock"]);
if (process.env.HANGAR_SKIP_SYSTEM !== "1" && process.platform === "linux") {
  bringSystemPackages(wantedSystemPackages(), { say, told: join(root, "node_modules/.system-packages-told") });
}

if (program.length > 0) {
  const pinned = join(root, `node_modules/node-${process.platform}-${process.arch}/bin/node`);
  const node = existsSync(pinned) ? pinned : process.execPath;
  if (node === process.execPath && Number(process.versions.node.split(".")[0]) < 24) {
    stop(`There is no pinned Node for ${process.platform}-${process.arch}; run this with Node 24 or later.`);
  }
  // Later starts find compiled what earlier ones did: half the time to ready, and the memory that stripping types
  // takes (a quarter of it all) is not needed. Freed memory goes back to the system instead of waiting in one of
  // many arenas. Whoever sets these otherwise is listened to.
  const env = {
    NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compile"),
    MALLOC_ARENA_MAX: "1",
    MALLOC_MMAP_THRESHOLD_: "32768",
    MALLOC_TRIM_THRESHOLD_: "131072",
    ...process.env,
  };
  const child = spawn(node, [join(root, program[0]), ...program.slice(1)], { cwd: root, stdio: "inherit", env });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 143)));
}
