import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parse } from "smol-toml";
import { messageOf } from "#core/assert.ts";
import { UsageError } from "../verb.ts";
import { APP_FILES } from "./names.ts";
import { FILE, type Findings, inspect, isTable, NAMED_CHECK, PROCESS } from "./shape.ts";

/** A validated app configuration file. */
export interface AppFile {
  path: string;
  /** Base directory of its paths. */
  dir: string;
  values: Record<string, unknown>;
  warnings: string[];
}

/** Reads the named file, or the one in the current directory. */
export function readAppFile(named: string | undefined, cwd: string): AppFile {
  const path = named === undefined ? APP_FILES.map((name) => join(cwd, name)).find(existsSync) : resolve(cwd, named);
  if (path === undefined) {
    throw new UsageError(`there is no ${APP_FILES.join(" or ")} in ${cwd}; name the file with --file, or write one`);
  }
  return parseAppFile(textOf(path), path);
}

/** Reads only the app's name. */
export function appNameIn(path: string): string | undefined {
  const { app } = parsed(textOf(path), path);
  return typeof app === "string" && app !== "" ? app : undefined;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    throw new UsageError(`${path} cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  }
}

function parsed(text: string, path: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (thrown) {
    // The parser's message points at the line.
    throw new UsageError(`${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

export function parseAppFile(text: string, path: string): AppFile {
  const values = withoutEmptyLists(parsed(text, path));
  const found: Findings = { problems: [], warnings: [] };
  inspect(values, FILE, "", found);
  const { checks } = values;
  if (checks !== undefined && !isTable(checks)) found.problems.push("checks must be a table of checks by name");
  for (const [name, check] of Object.entries(isTable(checks) ? checks : {})) {
    inspect(check, NAMED_CHECK, `checks.${name}`, found);
  }
  inspectProcesses(values["processes"], found);
  if (found.problems.length > 0) {
    throw new UsageError(`${path} cannot be used:\n${found.problems.map((problem) => `  ${problem}`).join("\n")}`);
  }
  return { path, dir: dirname(path), values, warnings: found.warnings };
}

/** Files that flyctl wrote have them in place of tables, too: `processes = []`. */
const withoutEmptyLists = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => !(Array.isArray(value) && value.length === 0)));

/** A process group is a command line, or a table. */
function inspectProcesses(processes: unknown, found: Findings): void {
  if (processes !== undefined && !isTable(processes)) found.problems.push("processes must be a table");
  for (const [name, process] of Object.entries(isTable(processes) ? processes : {})) {
    if (isTable(process)) inspect(process, PROCESS, `processes.${name}`, found);
    else if (typeof process !== "string") found.problems.push(`processes.${name} must be a command or a table`);
  }
}

/** A list of tables, or a single table. */
export function tables(value: unknown): Record<string, unknown>[] {
  if (value === undefined) return [];
  return (Array.isArray(value) ? value : [value]) as Record<string, unknown>[];
}
