/** Turns an app's configuration file into the machines it asks for: one config for each process group. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { MachineConfig, MachineService } from "#client/api.ts";
import { messageOf } from "#core/assert.ts";
import { UsageError } from "../verb.ts";
import { checkOf } from "./checks.ts";
import { type AppFile, tables } from "./read.ts";
import { servicesOf } from "./services.ts";
import { isTable } from "./shape.ts";
import { gigabytes, megabytes, splitWords, time } from "./units.ts";

/** Machines with the same config. */
export interface Group {
  name: string;
  /** Everything but the volume, which each machine has its own. */
  config: MachineConfig;
  mount?: { volume_name: string; size_gb: number; snapshot_retention?: number; rest: Mount };
}

type Mount = NonNullable<MachineConfig["mounts"]>[number];
type Table = Record<string, unknown>;

export const GROUP_KEY = "fly_process_group";
const DEFAULT_GROUP = "app";

export function groupsOf(file: AppFile, image: string): Group[] {
  const processes = file.values["processes"] as Record<string, string> | undefined;
  const commands = Object.entries(processes ?? {});
  const named = commands.length > 0 ? commands : [[DEFAULT_GROUP, undefined] as const];
  refuseUnknownGroups(file, new Set(named.map(([name]) => name)));
  return named.map(([name, command], index) => groupOf(file, image, { name, command, first: index === 0 }));
}

interface Wanted {
  name: string;
  command: string | undefined;
  /** Sections without a group apply to all, services to the first. */
  first: boolean;
}

function groupOf(file: AppFile, image: string, wanted: Wanted): Group {
  const { values } = file;
  const mine = (section: string): Table[] => tables(values[section]).filter((one) => isFor(one, wanted.name));
  const services = servicesOf(values).filter(({ processes }) => processes?.includes(wanted.name) ?? wanted.first);
  const only = (section: string): Table | undefined => onlyOne(section, mine(section), wanted.name, file.path);
  const mount = only("mounts");
  const config: MachineConfig = {
    image,
    metadata: { [GROUP_KEY]: wanted.name },
    ...filled("env", textsOf(values["env"])),
    ...filled("init", initOf(values, wanted.command)),
    ...guestOf(only("vm")),
    ...filled(
      "services",
      services.map(({ service }): MachineService => service),
    ),
    ...filled("checks", checksOf(values["checks"], wanted.name)),
    ...filled(
      "files",
      mine("files").map((one) => fileOf(one, file)),
    ),
    ...filled("statics", wanted.first ? (tables(values["statics"]) as unknown as never[]) : []),
    ...filled("stop_config", stopOf(values)),
    ...restartOf(only("restart")),
    ...metricsOf(only("metrics")),
  };
  return { name: wanted.name, config, ...(mount ? { mount: mountOf(mount, file.path) } : {}) };
}

/** For sections that a machine has once: one for its group takes precedence. */
function onlyOne(section: string, found: readonly Table[], group: string, path: string): Table | undefined {
  const named = found.filter(({ processes }) => Array.isArray(processes) && processes.length > 0);
  const [first, ...more] = named.length > 0 ? named : found;
  if (more.length === 0) return first;
  const hint = "name its group in `processes` where each belongs to another";
  throw new UsageError(`${path}: ${section} is defined more than once for process group ${group}; ${hint}`);
}

function isFor({ processes }: Table, group: string): boolean {
  return !Array.isArray(processes) || processes.length === 0 || processes.includes(group);
}

/** Empty values are omitted. */
function filled<Key extends keyof MachineConfig>(
  key: Key,
  value: MachineConfig[Key],
): Pick<MachineConfig, Key> | object {
  const empty = value === undefined || Object.keys(value as object).length === 0;
  return empty ? {} : { [key]: value };
}

function refuseUnknownGroups({ values, path }: AppFile, known: ReadonlySet<string>): void {
  const sections = ["http_service", "services", "mounts", "vm", "restart", "metrics", "files"];
  const lists = sections.flatMap((section) => tables(values[section]).map((one) => ({ section, one })));
  const checks = isTable(values["checks"]) ? Object.values(values["checks"]) : [];
  for (const { section, one } of [...lists, ...checks.map((one) => ({ section: "checks", one: one as Table }))]) {
    for (const name of (one["processes"] as string[] | undefined) ?? []) {
      if (known.has(name)) continue;
      throw new UsageError(`${path}: ${section} names the process group ${name}; there is ${[...known].join(", ")}`);
    }
  }
}

function textsOf(table: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries((table ?? {}) as Table).map(([name, value]) => [name, String(value as string)]),
  );
}

function initOf(values: Table, command: string | undefined): NonNullable<MachineConfig["init"]> {
  const { cmd, entrypoint, exec } = (values["experimental"] ?? {}) as Record<string, string | string[] | undefined>;
  const words = (value: string | string[] | undefined): string[] | undefined =>
    typeof value === "string" ? splitWords(value) : value;
  const swap = values["swap_size_mb"];
  const wanted = { cmd: words(command ?? cmd), entrypoint: words(entrypoint), exec: words(exec) };
  return {
    ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)),
    ...(typeof swap === "number" ? { swap_size_mb: swap } : {}),
  };
}

function guestOf(vm: Table | undefined): Partial<MachineConfig> {
  if (!vm) return {};
  const { size, memory, processes: _, ...rest } = vm;
  const memory_mb = memory === undefined ? {} : { memory_mb: megabytes(memory as string) };
  // A named size alone is enough.
  if (typeof size === "string" && memory === undefined && Object.keys(rest).length === 0) return { size };
  const [, kind, cpus] = /^(shared-cpu|performance)-(\d+)x$/.exec(typeof size === "string" ? size : "") ?? [];
  const named = kind ? { cpu_kind: kind === "shared-cpu" ? "shared" : "performance", cpus: Number(cpus) } : {};
  return { guest: { ...named, ...rest, ...memory_mb } as NonNullable<MachineConfig["guest"]> };
}

function checksOf(checks: unknown, group: string): NonNullable<MachineConfig["checks"]> {
  const own = Object.entries((checks ?? {}) as Record<string, Table>).filter(([, check]) => isFor(check, group));
  return Object.fromEntries(own.map(([name, check]) => [name, checkOf(check)]));
}

function fileOf({ guest_path, local_path, raw_value, secret_name }: Table, { dir, path }: AppFile) {
  const base = { guest_path: String(guest_path) };
  if (typeof secret_name === "string") return { ...base, secret_name };
  if (typeof raw_value === "string") return { ...base, raw_value };
  try {
    return { ...base, raw_value: readFileSync(resolve(dir, String(local_path))).toString("base64") };
  } catch (thrown) {
    throw new UsageError(`${path}: files: ${String(local_path)} cannot be read: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

function stopOf({ kill_signal, kill_timeout }: Table): NonNullable<MachineConfig["stop_config"]> {
  return {
    ...(kill_signal === undefined ? {} : { signal: kill_signal as "SIGINT" }),
    ...(kill_timeout === undefined ? {} : { timeout: time(kill_timeout as string, "s") }),
  };
}

const POLICIES: Record<string, "no" | "on-failure" | "always"> = {
  never: "no",
  no: "no",
  "on-failure": "on-failure",
  "on-fail": "on-failure",
  always: "always",
};

function restartOf(restart: Table | undefined): Partial<MachineConfig> {
  if (!restart) return {};
  const { policy = "on-failure", retries } = restart;
  const known = POLICIES[String(policy as string)];
  if (!known)
    throw new UsageError(
      `restart.policy is ${String(policy as string)}; it may be ${Object.keys(POLICIES).join(", ")}`,
    );
  return { restart: { policy: known, ...(typeof retries === "number" ? { max_retries: retries } : {}) } };
}

function metricsOf(metrics: Table | undefined): Partial<MachineConfig> {
  if (!metrics) return {};
  const { processes: _, path = "/metrics", ...rest } = metrics;
  return { metrics: { ...rest, path } as NonNullable<MachineConfig["metrics"]> };
}

function mountOf(mount: Table, path: string): NonNullable<Group["mount"]> {
  const { source, destination, initial_size, snapshot_retention } = mount;
  if (typeof source !== "string" || typeof destination !== "string") {
    throw new UsageError(`${path}: mounts needs source, a volume's name, and destination, a path`);
  }
  const grow = {
    extend_threshold_percent: mount["auto_extend_size_threshold"] as number | undefined,
    add_size_gb: gigabytes(mount["auto_extend_size_increment"]),
    size_gb_limit: gigabytes(mount["auto_extend_size_limit"]),
  };
  return {
    volume_name: source,
    size_gb: gigabytes(initial_size) ?? 3,
    ...(typeof snapshot_retention === "number" ? { snapshot_retention } : {}),
    rest: { path: destination, ...Object.fromEntries(Object.entries(grow).filter(([, value]) => value !== undefined)) },
  };
}
