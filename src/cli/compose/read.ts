/** Reads a compose file: its YAML, its variables, and the services of the active profiles. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { parse } from "yaml";
import { messageOf } from "#core/assert.ts";
import { isTable } from "../app-file/shape.ts";
import { UsageError } from "../verb.ts";
import { interpolate, type Variables } from "./interpolate.ts";

/** Names of the compose file in a folder; the first that exists is used. */
export const COMPOSE_FILES = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"] as const;

const LARGEST_BYTES = 1 << 20;
/** Aliases of YAML may make a small file very large. */
const MOST_ALIASES = 1000;

export type Table = Record<string, unknown>;

export interface Project {
  path: string;
  /** Its paths are relative to this folder. */
  dir: string;
  name: string | undefined;
  services: Map<string, Table>;
  volumes: Table;
  secrets: Table;
  configs: Table;
  variables: Variables;
  /** What cannot be carried over, with the reason. */
  notes: string[];
}

export const composeIn = (folder: string): string | undefined =>
  COMPOSE_FILES.map((name) => join(folder, name)).find((path) => existsSync(path));

export function readProject(path: string, env: Variables, profiles: readonly string[]): Project {
  const dir = dirname(path);
  const variables = { ...envFile(join(dir, ".env")), ...env };
  const root = withVariables(yamlOf(path), variables, path);
  if (!isTable(root)) throw new UsageError(`${path} holds no table of services`);
  for (const key of ["include", "extends"])
    if (key in root) throw new UsageError(`${path}: ${key} is not read; ${FLATTENED}`);
  const project: Project = {
    path,
    dir,
    name: typeof root["name"] === "string" ? root["name"] : undefined,
    services: new Map(),
    volumes: tableOf(root["volumes"], `${path}: volumes`),
    secrets: tableOf(root["secrets"], `${path}: secrets`),
    configs: tableOf(root["configs"], `${path}: configs`),
    variables,
    notes: [],
  };
  const wanted = new Set([...profiles, ...(variables["COMPOSE_PROFILES"] ?? "").split(",").filter(Boolean)]);
  for (const [name, given] of Object.entries(tableOf(root["services"], `${path}: services`)))
    takeService(project, name, given, wanted);
  if (project.services.size === 0) throw new UsageError(`${path} has no services`);
  return project;
}

const FLATTENED = "`docker compose config` writes a file without it";

function takeService({ path, services, notes }: Project, name: string, given: unknown, wanted: ReadonlySet<string>) {
  if (!/^[A-Za-z0-9][\w-]{0,62}$/.test(name))
    throw new UsageError(`${path}: ${name} is no name of a service: letters, digits, - and _, at most 63`);
  const service = tableOf(given, `${path}: services.${name}`);
  if (service["extends"] !== undefined)
    throw new UsageError(`${path}: services.${name}.extends is not read; ${FLATTENED}`);
  const of_service = texts(service["profiles"]);
  if (of_service.length === 0 || of_service.some((one) => wanted.has(one))) services.set(name, service);
  else
    notes.push(`${name}: left out, its profile is ${of_service.join(", ")} (profiles in [compose] name those wanted)`);
}

function yamlOf(path: string): unknown {
  try {
    if (statSync(path).size > LARGEST_BYTES) throw new Error(`it has more than ${LARGEST_BYTES} bytes`);
    // Documents of YAML 1.1, as compose reads them, have merge keys.
    return parse(readFileSync(path, "utf8"), { merge: true, maxAliasCount: MOST_ALIASES });
  } catch (thrown) {
    throw new UsageError(`${path} cannot be read: ${messageOf(thrown).trim()}`, { cause: thrown });
  }
}

/** Variables are replaced in values, not in keys. */
function withVariables(value: unknown, variables: Variables, where: string): unknown {
  if (typeof value === "string") return interpolate(value, variables, where);
  if (Array.isArray(value)) return value.map((one, at) => withVariables(one, variables, `${where}[${at}]`));
  if (!isTable(value)) return value;
  const inside = (key: string): string => (where.includes(": ") ? `${where}.${key}` : `${where}: ${key}`);
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, withVariables(one, variables, inside(key))]),
  );
}

/** NAME=value lines; empty where there is no such file. */
export function envFile(path: string): Record<string, string> {
  if (!existsSync(path)) return {};
  try {
    return parseEnv(readFileSync(path, "utf8")) as Record<string, string>;
  } catch (thrown) {
    throw new UsageError(`${path} cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  }
}

export function tableOf(value: unknown, where: string): Table {
  if (value === undefined || value === null) return {};
  if (!isTable(value)) throw new UsageError(`${where} must be a table`);
  return value;
}

/** A scalar as text; any other value as JSON for messages. */
export const plain = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "undefined");

/** A text or a list of texts. */
export const texts = (value: unknown): string[] =>
  (value === undefined || value === null ? [] : [value].flat()).map((one) => plain(one));

/** A table, or a list of `NAME=value`; the value of a bare `NAME` is undefined. */
export function pairsOf(value: unknown, where: string): Record<string, string | undefined> {
  const text = (one: unknown): string | undefined => (one === null || one === undefined ? undefined : plain(one));
  if (!Array.isArray(value))
    return Object.fromEntries(Object.entries(tableOf(value, where)).map(([name, one]) => [name, text(one)]));
  return Object.fromEntries(
    value.map((line: unknown): [string, string | undefined] => {
      const [, name = "", rest] = /^([^=]+)(?:=([\s\S]*))?$/.exec(plain(line)) ?? [];
      if (name === "") throw new UsageError(`${where}: ${plain(line)} is not NAME=value`);
      return [name, rest];
    }),
  );
}
