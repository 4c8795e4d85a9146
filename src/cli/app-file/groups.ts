/** Converts an app file to machine configs: one for each process group. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { MachineConfig, MachineService } from "#client/api.ts";
import { messageOf } from "#core/assert.ts";
import { UsageError } from "../verb.ts";
import { checkOf } from "./checks.ts";
import { type AppFile, tables } from "./read.ts";
import { servicesOf } from "./services.ts";
import { isTable } from "./shape.ts";
import { withSqliteSection } from "./sqlite.ts";
import { gigabytes, megabytes, splitWords, time } from "./units.ts";

/** Machines with the same config. */
export interface Group {
  name: string;
  /** Its machine runs to its end before the groups after it are deployed, and is destroyed. */
  once?: boolean;
  /** Everything but the volume, which each machine has its own. */
  config: MachineConfig;
  mount?: { volume_name: string; size_gb: number; snapshot_retention?: number; rest: Mount };
}

type Mount = NonNullable<MachineConfig["mounts"]>[number];
type Table = Record<string, unknown>;

/** What a process group has of its own, beside the sections that name it. */
export interface Process {
  command?: string | string[];
  entrypoint?: string | string[];
  image?: string;
  build?: { context?: string; dockerfile?: string } & Table;
  env?: Table;
  schedule?: string;
  once?: boolean;
  kill_signal?: string;
  kill_timeout?: string | number;
}

export const GROUP_KEY = "fly_process_group";
const DEFAULT_GROUP = "app";

/** The process groups that the file has, in the order in which they are started. */
export function processesOf({ values }: Pick<AppFile, "values">): [name: string, process: Process][] {
  const named = Object.entries((values["processes"] ?? {}) as Record<string, string | Process>);
  const all = named.map(([name, own]): [string, Process] => [name, typeof own === "string" ? { command: own } : own]);
  return all.length > 0 ? all : [[DEFAULT_GROUP, {}]];
}

/** `image` is of the groups that have none of their own; a built one is filled in later. */
export function groupsOf(file: AppFile, image: string): Group[] {
  const named = processesOf(file);
  refuseUnknownGroups(file, new Set(named.map(([name]) => name)));
  const groups = named.map(([name, process], index) =>
    groupOf(file, process.image ?? image, { name, process, first: index === 0 }),
  );
  return withSqliteSection(groups, file);
}

interface Wanted {
  name: string;
  process: Process;
  /** Sections without a group apply to all, services to the first. */
  first: boolean;
}

function groupOf(file: AppFile, image: string, wanted: Wanted): Group {
  const { values } = file;
  const { process } = wanted;
  const mine = (section: string): Table[] => tables(values[section]).filter((one) => isFor(one, wanted.name));
  const services = servicesOf(values).filter(({ processes }) => processes?.includes(wanted.name) ?? wanted.first);
  const only = (section: string): Table | undefined => onlyOne(section, mine(section), wanted.name, file.path);
  const mount = only("mounts");
  const config: MachineConfig = {
    image,
    metadata: { [GROUP_KEY]: wanted.name },
    ...filled("env", { ...textsOf(values["env"]), ...textsOf(process.env) }),
    ...filled("init", initOf(values, process)),
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
    ...filled("stop_config", stopOf({ ...values, ...process })),
    ...scheduleOf(wanted, file.path),
    ...restartOf(only("restart")),
    ...metricsOf(only("metrics")),
  };
  return {
    name: wanted.name,
    config,
    ...(process.once ? { once: true } : {}),
    ...(mount ? { mount: mountOf(mount, file.path) } : {}),
  };
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

const SCHEDULES = ["hourly", "daily", "weekly", "monthly"] as const;

/** A machine that is started on a schedule, and is stopped in between. */
function scheduleOf({ name, process: { schedule } }: Wanted, path: string): Partial<MachineConfig> {
  if (schedule === undefined) return {};
  const known = SCHEDULES.find((one) => one === schedule.replace(/^@/, ""));
  if (known) return { schedule: known, restart: { policy: "no" } };
  const hint = "cron expressions are not read: a machine's interval begins when it is created";
  throw new UsageError(
    `${path}: processes.${name}.schedule is one of ${SCHEDULES.join(", ")}, not ${schedule}; ${hint}`,
  );
}

function initOf(values: Table, process: Process): NonNullable<MachineConfig["init"]> {
  const { cmd, entrypoint, exec } = (values["experimental"] ?? {}) as Record<string, string | string[] | undefined>;
  const words = (value: string | string[] | undefined): string[] | undefined =>
    typeof value === "string" ? splitWords(value) : value;
  const swap = values["swap_size_mb"];
  const wanted = {
    cmd: words(process.command ?? cmd),
    entrypoint: words(process.entrypoint ?? entrypoint),
    exec: words(exec),
  };
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

function fileOf({ guest_path, local_path, raw_value, secret_name, mode }: Table, { dir, path }: AppFile) {
  const base = { guest_path: String(guest_path), ...(typeof mode === "number" ? { mode } : {}) };
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
