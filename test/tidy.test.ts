/**
 * Repository rules that the compiler does not check: which module may import which, no import cycles, no file that
 * has grown too long, nothing left behind. The table is the one in ARCHITECTURE.md.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { suite, test } from "node:test";
import { LONG_AT_NIGHT, NIGHT, TIMED } from "../scripts/test-groups.ts";

const root = join(import.meta.dirname, "..");
const LINES = 400;
const GENERATED = new Set(["src/client/api.ts"]);

const RESOURCES = ["core", "http", "auth"];
const ALLOWED: Record<string, readonly string[]> = {
  core: [],
  archive: [],
  s3: ["core"],
  http: ["core"],
  auth: ["core", "http"],
  apps: RESOURCES,
  hosts: RESOURCES,
  volumes: [...RESOURCES, "apps", "hosts"],
  connectors: [...RESOURCES, "s3", "apps", "hosts"],
  metrics: [...RESOURCES, "apps", "hosts"],
  alerts: [...RESOURCES, "apps", "metrics"],
  machines: [...RESOURCES, "apps", "hosts", "volumes"],
  registry: [...RESOURCES, "machines"],
  builds: [...RESOURCES, "apps"],
  git: [...RESOURCES, "apps"],
  deployments: ["core", "http"],
  identity: [...RESOURCES, "apps", "machines", "connectors"],
  network: [...RESOURCES, "apps", "machines"],
  replication: ["core", "http"],
  fly: RESOURCES,
  sprites: [...RESOURCES, "apps", "machines"],
  proxy: ["core", "s3", "http", "auth", "machines", "metrics", "apps", "network"],
  // What touches the host and what keeps things may see the rooms whose ports they implement.
  drivers: [
    "core",
    "archive",
    "machines",
    "volumes",
    "hosts",
    "network",
    "metrics",
    "registry",
    "builds",
    "git",
    "deployments",
  ],
  stores: [
    "core",
    "s3",
    "http",
    "auth",
    "apps",
    "hosts",
    "machines",
    "volumes",
    "connectors",
    "identity",
    "network",
    "proxy",
    "registry",
    "builds",
    "fly",
    "git",
    "alerts",
    "metrics",
    "replication",
    "sprites",
  ],
  client: ["core"],
  cli: ["core", "archive", "client"],
};
/** Files that wire modules together; no module imports them. */
const isWiring = (file: string): boolean =>
  /^src\/(main|platform|maintenance|replication\/flags|(wiring|testing)\/[\w-]+)\.ts$/.test(file);

const ROOT = new Set(
  `.ci .gitignore .npmrc .oxlintrc.json ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE NOTICE README.md bench bin
  biome.json docs examples package-lock.json package.json scripts src test tools tsconfig.json web`.split(/\s+/),
);

function walk(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.parentPath.includes("node_modules"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

const isTest = (file: string): boolean => /\.(test|suite)\.ts$|fixtures\.ts$/.test(file);
const moduleOf = (file: string): string => file.split("/")[1] ?? "";

interface Import {
  to: string;
  text: string;
}

function importsOf(file: string): Import[] {
  const source = readFileSync(join(root, file), "utf8");
  const found: Import[] = [];
  for (const match of source.matchAll(/^(?:import|export)\s[^;]*?from\s+"([^"]+)"|\bimport\("([^"]+)"\)/gm)) {
    const text = match[1] ?? match[2] ?? "";
    const to = text.startsWith("#") ? `src/${text.slice(1)}` : join(dirname(file), text);
    if (text.startsWith("#") || text.startsWith(".")) found.push({ to, text });
  }
  return found;
}

/** What `file` imports and may not, in words. */
function wrongImports(file: string): string[] {
  if (isWiring(file) || isTest(file)) return [];
  const module = moduleOf(file);
  const allowed = ALLOWED[module];
  if (!allowed) return [`${file}: module ${module} is not in the table`];
  return importsOf(file).flatMap(({ to, text }) => {
    const inside = moduleOf(to) === module;
    if (inside === text.startsWith("#")) return [`${file}: write "${text}" as ${inside ? "./…" : "#module/…"}`];
    return inside || allowed.includes(moduleOf(to)) ? [] : [`${file} imports ${to}`];
  });
}

const sources = walk("src");
/** Pages for the browser: they see each other, and of the rest only the typed client. */
const pages = walk("web");

suite("repository rules", () => {
  test("files of the command's bundle that use their own path are at the depth of its entry file", () => {
    const bundled = sources.filter(
      (file) => ["cli", "client", "core", "archive"].includes(moduleOf(file)) && !isTest(file),
    );
    const deep = bundled.filter(
      (file) => file.split("/").length !== 3 && readFileSync(join(root, file), "utf8").includes("import.meta"),
    );
    assert.deepEqual(deep, []);
  });

  test("modules import only the modules the table allows, through #module/file.ts", () => {
    assert.deepEqual(sources.flatMap(wrongImports), []);
  });

  test("pages import only pages and the client", () => {
    const wrong = pages.flatMap((file) =>
      importsOf(file)
        .filter(({ to }) => !to.startsWith("web/") && moduleOf(to) !== "client")
        .map(({ to }) => `${file} imports ${to}`),
    );
    assert.deepEqual(wrong, []);
  });

  test("there are no import cycles, types included", () => {
    const graph = new Map(
      // Types too: files that know each other's types can only be understood together.
      [...sources.filter((file) => !isTest(file)), ...pages].map((file) => [file, importsOf(file).map((i) => i.to)]),
    );
    const state = new Map<string, "open" | "done">();
    const cycles: string[] = [];
    const visit = (file: string, trail: string[]): void => {
      if (state.get(file) === "done") return;
      if (state.get(file) === "open") {
        cycles.push([...trail.slice(trail.indexOf(file)), file].join(" → "));
        return;
      }
      state.set(file, "open");
      for (const next of graph.get(file) ?? []) visit(next, [...trail, file]);
      state.set(file, "done");
    };
    for (const file of graph.keys()) visit(file, []);
    assert.deepEqual(cycles, []);
  });

  test(`no file is longer than ${LINES} lines`, () => {
    const all = [...sources, ...pages, ...walk("test"), ...walk("bench"), ...walk("scripts")];
    const long = all
      .filter((file) => !GENERATED.has(file))
      .map((file) => ({ file, lines: readFileSync(join(root, file), "utf8").split("\n").length }))
      .filter(({ lines }) => lines > LINES);
    assert.deepEqual(long, []);
  });

  test("no FIXME or TODO, and no test that runs alone", () => {
    const left = [...sources, ...pages, ...walk("test"), ...walk("bench"), ...walk("scripts")].filter((file) => {
      const source = readFileSync(join(root, file), "utf8");
      return file !== "test/tidy.test.ts" && /\b(FIXME|TODO|XXX)\b|\b(test|suite)\.only\(/.test(source);
    });
    assert.deepEqual(left, []);
  });

  const unversioned = existsSync(join(root, ".git")) ? undefined : "this is no checkout";
  test("the root folder holds only the listed files", { skip: unversioned }, () => {
    const { status, stdout, stderr } = spawnSync("git", ["ls-files"], { cwd: root, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    const names = new Set(stdout.split("\n").flatMap((file) => (file === "" ? [] : [file.split("/")[0] ?? ""])));
    assert.deepEqual(
      [...names].filter((name) => !ROOT.has(name)),
      [],
    );
  });

  test("the lists of long tests name existing tests", () => {
    const files = [...NIGHT, ...TIMED].map((name) => `test/system/${name}.test.ts`);
    const gone = [...files, ...LONG_AT_NIGHT].filter((file) => !existsSync(join(root, file)));
    assert.deepEqual(gone, []);
  });

  test("only src/core/clock.ts reads the clock", () => {
    const readers = sources.filter((file) => {
      const source = readFileSync(join(root, file), "utf8");
      return !isTest(file) && file !== "src/core/clock.ts" && /\bDate\.now\(\)|\bnew Date\(\)/.test(source);
    });
    assert.deepEqual(readers, []);
  });

  test("the lock file names no download address", () => {
    assert.doesNotMatch(readFileSync(join(root, "package-lock.json"), "utf8"), /"resolved"/);
  });
});
