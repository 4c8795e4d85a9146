/** Finds out what kind of app a folder holds, and how its image is built. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Table } from "../compose/read.ts";
import { UsageError } from "../verb.ts";
import { goImage, nodeImage, PORT, phpImage, pythonImage, rubyImage, staticImage } from "./dockerfiles.ts";
import { healthCheck } from "./healthcheck.ts";

export interface Detected {
  kind: string;
  /** The file that decided. */
  why: string;
  /** The port that the server listens on. */
  port: number;
  /** Instead of a check that the port is open. */
  check?: Table;
  /** The Dockerfile to write, given the base image; undefined when the folder has its own. */
  image?: { base: string; dockerfile(base: string): string };
}

class Folder {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  has(name: string): boolean {
    return existsSync(join(this.#path, name)) && statSync(join(this.#path, name)).isFile();
  }

  first(names: readonly string[]): string | undefined {
    return names.find((name) => this.has(name));
  }

  read(name: string): string {
    return this.has(name) ? readFileSync(join(this.#path, name), "utf8") : "";
  }
}

type Detector = (folder: Folder) => Detected | undefined;

/** The first match wins: a Rails app has a package.json too, so Ruby comes before Node. */
const DETECTORS: readonly Detector[] = [docker, ruby, php, python, node, go, staticFiles];

const FILES = [
  "package.json",
  "requirements.txt",
  "pyproject.toml",
  "go.mod",
  "Gemfile",
  "composer.json",
  "index.php",
  "index.html",
] as const;

export function detect(path: string): Detected {
  const folder = new Folder(path);
  for (const detector of DETECTORS) {
    const found = detector(folder);
    if (found) return found;
  }
  throw new UsageError(`${path} has none of Dockerfile, compose.yaml, ${FILES.join(", ")}: write a Dockerfile`);
}

/** Whether the folder has the files of a supported kind of app. */
export function isDetected(path: string): boolean {
  return new Folder(path).first(["Dockerfile", "manage.py", ...FILES]) !== undefined;
}

function docker(folder: Folder): Detected | undefined {
  if (!folder.has("Dockerfile")) return undefined;
  const [, port] = /^\s*EXPOSE\s+(\d{1,5})/im.exec(folder.read("Dockerfile")) ?? [];
  const why = port === undefined ? `it exposes no port, so ${PORT} is assumed` : `it exposes port ${port}`;
  const check = healthCheck(folder.read("Dockerfile"));
  return { kind: "Dockerfile", why, port: Number(port ?? PORT), ...(check ? { check } : {}) };
}

function node(folder: Folder): Detected | undefined {
  if (!folder.has("package.json")) return undefined;
  const { scripts = {}, main } = packageOf(folder);
  const program = [main, "server.js", "index.js", "app.js"].find((name) => name !== undefined && folder.has(name));
  if (!scripts["start"] && !program)
    throw new UsageError("package.json has no start script, and there is no server.js, index.js or app.js: add one");
  const command = scripts["start"] ? ["npm", "start"] : ["node", program ?? ""];
  const why = scripts["start"] ? "package.json has a start script" : `it has package.json and ${program}`;
  const options = { command, locked: folder.has("package-lock.json"), builds: scripts["build"] !== undefined };
  return { kind: "Node", why, port: PORT, image: { base: "node:22-slim", dockerfile: nodeImage(options) } };
}

function packageOf(folder: Folder): { scripts?: Record<string, string>; main?: string } {
  try {
    return JSON.parse(folder.read("package.json")) as { scripts?: Record<string, string>; main?: string };
  } catch (thrown) {
    throw new UsageError(`package.json cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Python web servers by package, each with its command. */
const PYTHON_SERVERS: readonly [package_name: string, command: (module: string) => string[]][] = [
  ["uvicorn", (module) => ["uvicorn", `${module}:app`, "--host", "0.0.0.0", "--port", String(PORT)]],
  ["gunicorn", (module) => ["gunicorn", `${module}:app`, "--bind", `0.0.0.0:${PORT}`]],
  ["flask", (module) => ["flask", "--app", module, "run", "--host", "0.0.0.0", "--port", String(PORT)]],
];

function python(folder: Folder): Detected | undefined {
  const list = folder.first(["requirements.txt", "pyproject.toml"]);
  const program = folder.first(["main.py", "app.py", "server.py"]);
  if (!list && !folder.has("manage.py")) return undefined;
  const packages = `${folder.read("requirements.txt")}\n${folder.read("pyproject.toml")}`;
  const server = PYTHON_SERVERS.find(([name]) => new RegExp(`^[\\s"']*${name}\\b`, "im").test(packages));
  const command = folder.has("manage.py")
    ? ["python3", "manage.py", "runserver", `0.0.0.0:${PORT}`]
    : program && server
      ? server[1](program.replace(/\.py$/, ""))
      : program && ["python3", program];
  if (!command) throw new UsageError(`it has ${list}, but no manage.py, main.py, app.py or server.py to run: add one`);
  const runs = server && program && !folder.has("manage.py") ? `, and ${server[0]} runs ${program}` : "";
  const image = { base: "python:3-slim", dockerfile: pythonImage({ command, list }) };
  return { kind: "Python", why: `it has ${list ?? "manage.py"}${runs}`, port: PORT, image };
}

function go(folder: Folder): Detected | undefined {
  if (!folder.has("go.mod")) return undefined;
  const [, version = "1"] = /^go (\d+\.\d+)/m.exec(folder.read("go.mod")) ?? [];
  const image = { base: `golang:${version}`, dockerfile: goImage };
  return { kind: "Go", why: `go.mod requires Go ${version}`, port: PORT, image };
}

function ruby(folder: Folder): Detected | undefined {
  if (!folder.has("Gemfile")) return undefined;
  const rails = folder.has("bin/rails");
  const command = rails
    ? ["bin/rails", "server", "-b", "0.0.0.0", "-p", String(PORT)]
    : ["bundle", "exec", "rackup", "-o", "0.0.0.0", "-p", String(PORT)];
  if (!rails && !folder.has("config.ru"))
    throw new UsageError("it has a Gemfile, but neither bin/rails nor config.ru: add one");
  const why = `it has a Gemfile and ${rails ? "bin/rails" : "config.ru"}`;
  return { kind: "Ruby", why, port: PORT, image: { base: "ruby:3-slim", dockerfile: rubyImage(command) } };
}

function php(folder: Folder): Detected | undefined {
  const file = folder.first(["composer.json", "index.php", "public/index.php"]);
  if (!file) return undefined;
  const root = folder.has("public/index.php") ? "public" : ".";
  const image = { base: "php:8-cli", dockerfile: phpImage(root, folder.has("composer.json")) };
  return { kind: "PHP", why: `it has ${file}`, port: PORT, image };
}

function staticFiles(folder: Folder): Detected | undefined {
  if (!folder.has("index.html")) return undefined;
  const image = { base: "busybox:stable", dockerfile: staticImage };
  return { kind: "static files", why: "it has index.html and nothing that runs", port: PORT, image };
}
