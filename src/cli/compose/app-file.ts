/** `[compose]` of a hangar.toml: the services of the compose file are its process groups, and its own sections win. */
import { resolve } from "node:path";
import type { Group } from "../app-file/groups.ts";
import { type AppFile, tables } from "../app-file/read.ts";
import { isTable } from "../app-file/shape.ts";
import { convert } from "./convert.ts";
import { readProject, type Table } from "./read.ts";

export interface Composed {
  file: AppFile;
  secrets: Record<string, string>;
  /** Its groups resolve each other by the names of the services. */
  project: boolean;
}

/** Sections whose entry for a group replaces that of the compose file. */
const REPLACED = ["mounts", "vm", "restart"] as const;
const ADDED = ["services", "files"] as const;

export function withCompose(file: AppFile): Composed {
  const { compose } = file.values as { compose?: { file?: string; profiles?: string[] } };
  if (!compose) return { file, secrets: {}, project: false };
  const project = readProject(resolve(file.dir, compose.file ?? "compose.yaml"), process.env, compose.profiles ?? []);
  const { values, secrets } = convert(project);
  const warnings = [...file.warnings, ...project.notes];
  return { file: { ...file, values: merged(values, file.values), warnings }, secrets, project: true };
}

function merged(compose: Table, own: Table): Table {
  const named = (section: string): Set<unknown> =>
    new Set(tables(own[section]).flatMap(({ processes }) => (Array.isArray(processes) ? processes : [])));
  const without = (section: string, groups: ReadonlySet<unknown>): Table[] =>
    tables(compose[section]).filter(({ processes }) => !groups.has((processes as string[])[0]));
  const services = new Set([...named("services"), ...named("http_service")]);
  const sections = [
    ...REPLACED.map((section) => [section, [...without(section, named(section)), ...tables(own[section])]] as const),
    ...ADDED.map((section) => {
      const replaced = section === "services" ? services : new Set();
      return [section, [...without(section, replaced), ...tables(own[section])]] as const;
    }),
  ];
  return {
    ...own,
    ...Object.fromEntries(sections),
    checks: { ...(compose["checks"] as Table), ...(isTable(own["checks"]) ? own["checks"] : {}) },
    processes: mergedProcesses(compose["processes"] as Record<string, Table>, own["processes"]),
  };
}

function mergedProcesses(compose: Record<string, Table>, own: unknown): Table {
  const given = Object.entries(isTable(own) ? own : {}).map(([name, process]): [string, Table] => [
    name,
    isTable(process) ? process : { command: process },
  ]);
  const all = { ...compose };
  for (const [name, process] of given) {
    const env = { ...(all[name]?.["env"] as Table), ...(process["env"] as Table) };
    all[name] = { ...all[name], ...process, env };
  }
  return all;
}

/** The machine's resolver searches among the app's process groups, so `db` is `db.process.shop.internal`. */
export const inProject = (group: Group, app_name: string): Group => ({
  ...group,
  config: { ...group.config, dns: { searches: [`process.${app_name}.internal`] } },
});
