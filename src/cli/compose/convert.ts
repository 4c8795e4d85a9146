/** Converts the services of a compose file to process groups of one app, with the values of a hangar.toml. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isTable } from "../app-file/shape.ts";
import { UsageError } from "../verb.ts";
import { documentsFor, mountsFor } from "./files.ts";
import { checksFor } from "./health.ts";
import { servicesFor } from "./ports.ts";
import { envFile, type Project, pairsOf, plain, type Table, tableOf, texts } from "./read.ts";

export interface Converted {
  values: Table;
  /** Secrets that the app needs for its files, in base64. */
  secrets: Record<string, string>;
}

/** Keys that are carried over, or that mean nothing here. */
const KNOWN = new Set(
  `annotations attach build command configs container_name cpus depends_on deploy develop entrypoint env_file environment
  expose healthcheck image init labels logging mem_limit mem_reservation networks platform ports profiles pull_policy
  restart scale secrets stdin_open stop_grace_period stop_signal tmpfs tty volumes`.split(/\s+/),
);

/** Why a key is not supported; any other unknown key is only named. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  privileged: "machines get no rights over the host",
  cap_add: "machines get no rights over the host",
  devices: "machines get no devices of the host",
  gpus: "machines get no devices of the host",
  network_mode: "each machine has a network address of its own",
  pid: "each machine has processes of its own",
  ipc: "each machine has memory of its own",
  user: "write USER into the Dockerfile",
  working_dir: "write WORKDIR into the Dockerfile",
  extra_hosts: "names come from the private DNS",
  links: "services are found by their names",
  external_links: "services are found by their names",
  volumes_from: "a volume belongs to one machine",
  read_only: "the root file system can be written",
  hostname: "the host name is the machine's id",
};

export function convert(project: Project): Converted {
  const secrets: Record<string, string> = {};
  const values: Table & { services: Table[]; mounts: Table[]; files: Table[]; vm: Table[]; restart: Table[] } = {
    processes: {},
    services: [],
    mounts: [],
    files: [],
    vm: [],
    restart: [],
    checks: {},
  };
  const shared = new Map<string, string>();
  const { order, once } = startOrder(project);
  for (const name of order) {
    const service = project.services.get(name) ?? {};
    noteLeftOut(project, name, service);
    const held = mountsFor(project, name, service, shared);
    (values["processes"] as Table)[name] = processOf(project, name, service, once.has(name));
    values.services.push(...servicesFor(project, name, service));
    values.mounts.push(...held.mounts);
    values.files.push(...held.files, ...documentsFor(project, { name, service }, secrets));
    values.vm.push(...vmOf(project, name, service));
    values.restart.push(...restartOf(project, name, service));
    Object.assign(values["checks"] as Table, once.has(name) ? {} : checksFor(project, name, service));
  }
  return { values, secrets };
}

function processOf(project: Project, name: string, service: Table, once: boolean): Table {
  const { image, build, command, entrypoint, stop_signal, stop_grace_period } = service;
  const where = `${project.path}: services.${name}`;
  if (image === undefined && build === undefined) throw new UsageError(`${where} has neither image nor build`);
  const words = (key: string, value: unknown): Table =>
    value === undefined || value === null ? {} : { [key]: Array.isArray(value) ? texts(value) : plain(value) };
  return {
    // An image beside a build is only the tag of the built image.
    ...(build === undefined ? { image: plain(image) } : { build: buildOf(project, name, build) }),
    ...words("command", command),
    ...words("entrypoint", entrypoint),
    env: environmentOf(project, name, service),
    ...(once ? { once: true } : {}),
    ...(typeof stop_signal === "string" ? { kill_signal: stop_signal } : {}),
    ...(stop_grace_period === undefined ? {} : { kill_timeout: stop_grace_period }),
  };
}

const BUILD_KEYS = new Set(["context", "dockerfile", "target", "args"]);

function buildOf({ path, notes, variables }: Project, name: string, given: unknown): Table {
  const where = `${path}: services.${name}.build`;
  const build = typeof given === "string" ? { context: given } : tableOf(given, where);
  if ("dockerfile_inline" in build) throw new UsageError(`${where}.dockerfile_inline is not read: write a Dockerfile`);
  for (const key of Object.keys(build).filter((one) => !BUILD_KEYS.has(one) && !one.startsWith("x-")))
    notes.push(`${name}: build.${key} is left out`);
  const args = Object.entries(pairsOf(build["args"], `${where}.args`)).flatMap(([key, value]) => {
    const found = value ?? variables[key];
    return found === undefined ? [] : [[key, found] as const];
  });
  return {
    context: plain(build["context"] ?? "."),
    ...(typeof build["dockerfile"] === "string" ? { dockerfile: build["dockerfile"] } : {}),
    ...(typeof build["target"] === "string" ? { target: build["target"] } : {}),
    ...(args.length > 0 ? { args: Object.fromEntries(args) } : {}),
  };
}

/** A variable without a value takes it from this process's environment; `environment` wins over `env_file`. */
function environmentOf(project: Project, name: string, service: Table): Record<string, string> {
  const where = `${project.path}: services.${name}`;
  const from_files = [service["env_file"] ?? []].flat().flatMap((given: unknown) => {
    const file = isTable(given) ? given : { path: given };
    const path = resolve(project.dir, plain(file["path"]));
    const read = envFile(path);
    if (Object.keys(read).length === 0 && file["required"] !== false) checkThere(path, `${where}.env_file`);
    return Object.entries(read);
  });
  const own = Object.entries(pairsOf(service["environment"], `${where}.environment`)).flatMap(([key, value]) => {
    const found = value ?? project.variables[key];
    return found === undefined ? [] : [[key, found] as const];
  });
  return Object.fromEntries([...from_files, ...own]);
}

function checkThere(path: string, where: string): void {
  if (!existsSync(path)) throw new UsageError(`${where}: there is no file ${path}`);
}

const MEMORY_STEP_MB = 256;

function vmOf({ path, notes }: Project, name: string, service: Table): Table[] {
  const deploy = tableOf(service["deploy"], `${path}: services.${name}.deploy`);
  const limits = tableOf(tableOf(deploy["resources"], `${path}: services.${name}.deploy.resources`)["limits"], path);
  const replicas = deploy["replicas"] ?? service["scale"];
  if (Number(replicas ?? 1) !== 1)
    notes.push(`${name}: it begins with one machine; \`hangar scale ${name}=${plain(replicas)}\` after the deploy`);
  const memory = megabytesOf(limits["memory"] ?? service["mem_limit"]);
  const cpus = Math.ceil(Number(limits["cpus"] ?? service["cpus"] ?? 0));
  if (memory === undefined && !(cpus > 0)) return [];
  const memory_mb = memory && Math.ceil(memory / MEMORY_STEP_MB) * MEMORY_STEP_MB;
  return [{ ...(memory_mb ? { memory: memory_mb } : {}), ...(cpus > 0 ? { cpus } : {}), processes: [name] }];
}

/** `512m`, `1.5gb`, or bytes. */
function megabytesOf(given: unknown): number | undefined {
  if (given === undefined) return undefined;
  const [, number = "", unit = "b"] = /^([\d.]+)\s*([bkmg])?b?$/i.exec(plain(given)) ?? [];
  if (number === "") throw new UsageError(`${plain(given)} is no size of memory such as 512m or 1g`);
  return Number(number) * ({ b: 2 ** -20, k: 2 ** -10, m: 1, g: 1024 }[unit.toLowerCase()] ?? 1);
}

function restartOf({ path }: Project, name: string, { restart }: Table): Table[] {
  if (restart === undefined) return [];
  const [, policy = "", retries] =
    /^(no|false|always|unless-stopped|on-failure)(?::(\d+))?$/.exec(plain(restart)) ?? [];
  if (policy === "")
    throw new UsageError(
      `${path}: services.${name}.restart is ${plain(restart)}: no, on-failure, always or unless-stopped`,
    );
  const known = { "unless-stopped": "always", false: "no" }[policy] ?? policy;
  return [{ policy: known, ...(retries === undefined ? {} : { retries: Number(retries) }), processes: [name] }];
}

function noteLeftOut({ notes }: Project, name: string, service: Table): void {
  for (const key of Object.keys(service)) {
    if (KNOWN.has(key) || key.startsWith("x-")) continue;
    notes.push(`${name}: ${key} is left out${LEFT_OUT[key] ? `: ${LEFT_OUT[key]}` : ""}`);
  }
  const aliases = isTable(service["networks"])
    ? Object.values(service["networks"]).flatMap((one) => (isTable(one) ? texts(one["aliases"]) : []))
    : [];
  const others = [...aliases, ...texts(service["container_name"])].filter((alias) => alias !== name);
  if (others.length > 0)
    notes.push(`${name}: its other names (${others.join(", ")}) are not known inside; use ${name}`);
}

/** Dependencies come first; a service whose completion others wait for runs once at each deploy. */
function startOrder(project: Project): { order: string[]; once: Set<string> } {
  const { services, path } = project;
  const order: string[] = [];
  const once = new Set<string>();
  const visit = (name: string, above: readonly string[]): void => {
    if (above.includes(name))
      throw new UsageError(`${path}: depends_on goes in a circle: ${[...above, name].join(" -> ")}`);
    if (order.includes(name)) return;
    for (const [other, condition] of neededBy(project, name)) {
      if (condition === "service_completed_successfully") once.add(other);
      visit(other, [...above, name]);
    }
    order.push(name);
  };
  for (const name of services.keys()) visit(name, []);
  return { order, once };
}

/** The dependencies of a service, each with the condition that it waits for. */
function neededBy({ services, path }: Project, name: string): [other: string, condition: unknown][] {
  const where = `${path}: services.${name}.depends_on`;
  const given = services.get(name)?.["depends_on"];
  const needed = isTable(given) ? given : Object.fromEntries(texts(given).map((one) => [one, {}]));
  return Object.entries(needed).flatMap(([other, how]): [string, unknown][] => {
    const table = tableOf(how, `${where}.${other}`);
    if (services.has(other)) return [[other, table["condition"]]];
    if (table["required"] === false) return [];
    throw new UsageError(`${where} names ${other}, which is no service (or its profile is off)`);
  });
}
