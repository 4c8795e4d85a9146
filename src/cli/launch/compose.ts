/** `hangar launch` in a folder with a compose file: hangar.toml only refers to the compose file. */
import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import { type Group, groupsOf, processesOf } from "../app-file/groups.ts";
import type { AppFile } from "../app-file/read.ts";
import { convert } from "../compose/convert.ts";
import { composeIn, readProject } from "../compose/read.ts";
import { table } from "../output.ts";
import { UsageError } from "../verb.ts";
import { isDetected } from "./detect.ts";

/**
 * The compose file of `--compose`, or that of the folder. A file without builds beside a detected app is skipped: it
 * holds the databases for local development.
 */
export function composeFile(folder: string, given: string | undefined): string | undefined {
  if (given !== undefined) {
    const path = resolve(given);
    if (existsSync(path)) return path;
    throw new UsageError(`--compose: there is no file ${path}`);
  }
  const found = composeIn(folder);
  if (found === undefined || !isDetected(folder)) return found;
  const { services } = readProject(found, process.env, []);
  return [...services.values()].some(({ build }) => build !== undefined) ? found : undefined;
}

/** The findings about the file, and the head of the hangar.toml that refers to it. */
export function composeFor(folder: string, path: string) {
  const project = readProject(path, process.env, []);
  const file = relative(folder, path);
  const app_file: AppFile = { path, dir: project.dir, values: convert(project).values, warnings: [] };
  const groups = groupsOf(app_file, "");
  const images = new Map(
    processesOf(app_file).map(([name, { image, build }]) => [name, image ?? `built in ${build?.context}`]),
  );
  const rows = groups.map((group) => [group.name, images.get(group.name) ?? "", portsText(group), kindText(group)]);
  const left_out = project.notes.map((note) => `  ${note}`);
  const lines = [
    `This is a compose file: ${file}. Its services become process groups of one app, which find each other by their names.`,
    table(["group", "image", "ports", ""], rows),
    ...(left_out.length > 0 ? ["Not as in the file:", ...left_out] : []),
  ].join("\n");
  return {
    name_in_file: project.name,
    file,
    head: `# Written by \`hangar launch\`: each service of ${file} is a process group of this app.\n`,
    data: { kind: "compose", file, groups: groups.map(({ name }) => name), notes: project.notes },
    findings: lines,
    next: "`hangar deploy --dry-run`, then `hangar deploy`",
  };
}

const portsText = ({ config }: Group): string =>
  (config.services ?? [])
    .flatMap(({ internal_port, ports = [] }) => ports.map(({ port }) => `${port} -> ${internal_port}`))
    .join(", ") || "private";

const kindText = ({ mount, once }: Group): string =>
  once ? "runs once at each deploy" : mount ? `volume ${mount.volume_name} at ${mount.rest.path}` : "";
