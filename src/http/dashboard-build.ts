/**
 * Builds the browser's files from the sources in `web/`, in a worker thread: the memory for stripping types is freed
 * when the thread ends, and the compression does not block other requests.
 *
 * There is no bundler. Browsers load modules as Node does; the build only strips types and replaces package names by
 * URLs.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, extname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parentPort } from "node:worker_threads";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { BrowserPackages } from "./browser-packages.ts";

interface BuiltFile {
  type: string;
  /** The compressed file; only this is kept. */
  br: Uint8Array;
  gzip: Uint8Array;
}

export interface Built {
  /** Hash of everything, part of every URL, so that files can be cached forever. */
  id: string;
  page: string;
  files: Map<string, BuiltFile>;
}

const WEB = join(import.meta.dirname, "../../web");
const CLIENT = join(import.meta.dirname, "../client");

/** Packages that pages import by name: local path and served name. */
const PACKAGES: Record<string, { from: string; to: string }> = {
  preact: { from: fileURLToPath(import.meta.resolve("preact")), to: "lib/preact.js" },
  "preact/hooks": { from: fileURLToPath(import.meta.resolve("preact/hooks")), to: "lib/hooks.js" },
  uplot: { from: fileURLToPath(import.meta.resolve("uplot/dist/uPlot.esm.js")), to: "lib/uplot.js" },
  "#client/client.ts": { from: join(CLIENT, "client.ts"), to: "lib/client.js" },
  "#client/list-fields.ts": { from: join(CLIENT, "list-fields.ts"), to: "lib/list-fields.js" },
  "#client/log-line.ts": { from: join(CLIENT, "log-line.ts"), to: "lib/log-line.js" },
  "#core/log-line.ts": { from: join(CLIENT, "../core/log-line.ts"), to: "lib/log-line-core.js" },
  "#client/terminal.ts": { from: join(CLIENT, "terminal.ts"), to: "lib/terminal.js" },
};

/** Dashboards of charts, the same files that Grafana uses. */
const BOARDS = join(import.meta.dirname, "../../docs/grafana");

/** Packages of the query editor; their dependencies are included. */
const EDITOR = [
  "@codemirror/autocomplete",
  "@codemirror/commands",
  "@codemirror/language",
  "@codemirror/state",
  "@codemirror/view",
  "@lezer/highlight",
  "@prometheus-io/codemirror-promql",
];

const TYPES: Record<string, string> = {
  ".json": "application/json; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Module specifiers after `from` or inside `import()`. */
const SPECIFIER = /(\bfrom\s*|\bimport\s*\(\s*|^import\s*)["']([\w#@./-]+)["']/gm;

/** Rewrites a module for the browser, as served under `name`. */
function toBrowser(name: string, source: string): string {
  return source.replaceAll(SPECIFIER, (_, before: string, wanted: string) => {
    if (wanted.startsWith(".")) return `${before}"${wanted.replace(/\.ts$/, ".js")}"`;
    const to = PACKAGES[wanted]?.to ?? editor.served(wanted);
    if (!to) throw new Error(`${name} imports ${wanted}, which a browser cannot find`);
    const path = posix.relative(posix.dirname(name), to);
    return `${before}"${path.startsWith(".") ? path : `./${path}`}"`;
  });
}

/** A module without types; in the npm package they are already stripped. */
function plain(file: string): string {
  const source = readFileSync(file, "utf8");
  return file.endsWith(".ts") ? stripTypeScriptTypes(source) : source;
}

const editor = new BrowserPackages("lib/packages", EDITOR);

function sources(): Map<string, string> {
  const found = new Map<string, string>(editor.files());
  // Minified.
  for (const name of readdirSync(BOARDS).filter((file) => file.endsWith(".json")))
    found.set(`boards/${name}`, JSON.stringify(JSON.parse(readFileSync(join(BOARDS, name), "utf8"))));
  for (const entry of readdirSync(WEB, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = posix.relative(WEB, path);
    if (!entry.isFile()) continue;
    if (name.endsWith(".css") || name.endsWith(".svg")) found.set(name, readFileSync(path, "utf8"));
    if (/\.[jt]s$/.test(name) && !/\.(d|test)\.ts$/.test(name)) {
      const to = name.replace(/\.ts$/, ".js");
      found.set(to, toBrowser(to, plain(path)));
    }
  }
  for (const { from, to } of Object.values(PACKAGES)) {
    found.set(to, toBrowser(to, plain(from).replace(/^\/\/# sourceMappingURL=.*$/m, "")));
  }
  const chart = join(dirname(PACKAGES["uplot"]?.from ?? ""), "uPlot.min.css");
  found.set("lib/uplot.css", readFileSync(chart, "utf8"));
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Pages that are rarely opened; they and modules that only they import are loaded on demand. */
const SELDOM = "alerts connectors databases hosts identity images metrics services settings tokens volumes".split(" ");

/** Parts of pages that are large or seldom shown: the first chart, query and terminal, the lists of large organizations. */
const PARTS_OF_PAGES = ["query-editor", "machine-terminal", "machines-search"];

const LATER = new Set(["lib/uplot.js", ...[...SELDOM, ...PARTS_OF_PAGES].map((name) => `pages/${name}.js`)]);

/** All modules reachable from `first`, so that a browser can preload them at once, including those of the next page. */
function reachable(all: Map<string, string>, first: string, later: ReadonlySet<string>): string[] {
  const names = new Set([first]);
  for (const name of names) {
    const source = all.get(name);
    // A browser would show an empty page without an error.
    if (source === undefined) throw new Error(`a page imports ${name}, which is not among the files of the dashboard`);
    // Imports of packages were resolved when they were rewritten; their comments may contain imports too.
    if (name.startsWith("lib/packages/")) continue;
    for (const [, , wanted = ""] of source.matchAll(SPECIFIER)) {
      const found = posix.join(posix.dirname(name), wanted);
      if (!later.has(found)) names.add(found);
    }
  }
  return [...names];
}

function page(id: string, modules: readonly string[]): string {
  const at = (name: string): string => `/assets/${id}/${name}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Hangar</title>
<link rel="icon" href="${at("icon.svg")}" type="image/svg+xml">
<link rel="stylesheet" href="${at("style.css")}">
${modules.map((name) => `<link rel="modulepreload" href="${at(name)}">`).join("\n")}
<script type="module" src="${at("main.js")}"></script>
</head>
<body>
<div id="app"></div>
<noscript>The dashboard needs JavaScript. <a href="/docs">The API is readable</a> without it, and <code>hangar --help</code> shows the command.</noscript>
</body>
</html>
`;
}

export function build(): Built {
  const all = sources();
  const hash = createHash("sha256");
  for (const [name, source] of all) hash.update(`${name}\0${source}\0`);
  const id = hash.digest("hex").slice(0, 16);
  // Checks that every import exists, also of pages loaded on demand.
  reachable(all, "main.js", new Set());
  const files = [...all].map(([name, source]): [string, BuiltFile] => {
    const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
    const type = TYPES[extname(name)] ?? "application/octet-stream";
    return [name, { type, br: brotliCompressSync(source, { params }), gzip: gzipSync(source, { level: 9 }) }];
  });
  return { id, page: page(id, reachable(all, "main.js", LATER)), files: new Map(files) };
}

parentPort?.postMessage(build());
