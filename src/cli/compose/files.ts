/** Volumes, bind mounts, configs and secrets of a compose service: a volume of its own, and files. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, posix, relative, resolve } from "node:path";
import { isTable } from "../app-file/shape.ts";
import { UsageError } from "../verb.ts";
import { type Project, plain, type Table, tableOf, texts } from "./read.ts";

/** A bind-mounted folder becomes files of the config up to these limits; a larger one belongs into the image. */
const MOST_FILES = 64;
const MOST_FILE_BYTES = 256 << 10;

export interface Held {
  mounts: Table[];
  files: Table[];
}

interface Mount {
  type: string;
  source: string;
  target: string;
}

/** `shared` holds the services that use each named volume. */
export function mountsFor(project: Project, name: string, service: Table, shared: Map<string, string>): Held {
  const held: Held = { mounts: [], files: [] };
  const note = (text: string): void => void project.notes.push(`${name}: ${text}`);
  for (const given of [service["volumes"] ?? []].flat()) {
    const mount = mountOf(given, `${project.path}: services.${name}.volumes`);
    if (mount.type === "bind") bind(project, { name, mount, service }, held);
    else for (const text of takeVolume({ name, mount }, held, shared)) note(text);
  }
  for (const one of texts(service["tmpfs"])) note(noTmpfs(one));
  return held;
}

const noTmpfs = (path: string): string =>
  `${path} is on the machine's own disk, not in memory: there is no tmpfs mount`;

/** Assigns the volume if the machine can have it; returns the notes about it. */
function takeVolume(
  { name, mount: { type, source, target } }: { name: string; mount: Mount },
  { mounts }: Held,
  shared: Map<string, string>,
): string[] {
  const [taken] = mounts;
  if (type === "tmpfs") return [noTmpfs(target)];
  if (source === "") return [`${target} is on the machine's own disk: give its volume a name to keep it`];
  if (taken)
    return [
      `${target} is on the machine's own disk, which each deploy makes anew: a machine has one volume, and that is ${plain(taken["source"])}`,
    ];
  const other = shared.get(source);
  shared.set(source, name);
  mounts.push({ source: volumeName(source), destination: target, initial_size: "1gb", processes: [name] });
  const apart = `its volume ${source} is not that of ${other}: a volume belongs to one machine, so files are not shared`;
  return other === undefined ? [] : [apart];
}

/** Volumes are named with lower-case letters, digits and _. */
const volumeName = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]/g, "_")
    .slice(0, 30);

/** `data:/var/lib/x:ro`, `./conf:/etc/x`, or the long form. */
function mountOf(given: unknown, where: string): Mount {
  if (isTable(given)) {
    const { type = "volume", source = "", target } = given;
    if (typeof target !== "string" || !target.startsWith("/")) throw new UsageError(`${where}: target must be a path`);
    return { type: plain(type), source: plain(source), target };
  }
  const [, source = "", target = ""] = /^(?:([^:]+):)?(\/[^:]*)(?::[\w,]+)?$/.exec(plain(given)) ?? [];
  if (target === "") throw new UsageError(`${where}: ${plain(given)} is no volume such as data:/var/lib/data`);
  return { type: /^[./~]/.test(source) ? "bind" : "volume", source, target };
}

/** Bind mounts are copied, because the files of this computer are not on the host of the machine. */
function bind(
  project: Project,
  { name, mount, service }: { name: string; mount: Mount; service: Table },
  held: Held,
): void {
  const path = resolve(project.dir, mount.source);
  const why = notCopied(project, { path, mount, service });
  const files = why === undefined ? filesBelow(path) : [];
  const said =
    why ??
    (files
      ? `is copied to ${mount.target} at each deploy; what the machine writes there stays there`
      : `is not copied: it has more than ${MOST_FILES} files or ${MOST_FILE_BYTES} bytes; put it into the image`);
  project.notes.push(`${name}: ${mount.source} ${said}`);
  for (const file of files ?? []) {
    const guest_path = posix.join(mount.target, relative(path, file));
    held.files.push({ guest_path, local_path: file, ...modeOf(file), processes: [name] });
  }
}

/** The note on a bind mount that is not copied. */
function notCopied(
  { dir }: Project,
  { path, mount, service }: { path: string; mount: Mount; service: Table },
): string | undefined {
  const context = isTable(service["build"]) ? service["build"]["context"] : service["build"];
  if (mount.source.endsWith(".sock") || /^\/(proc|sys|dev|var\/run|run)(\/|$)/.test(mount.source))
    return "is not mounted: machines get nothing of the host's";
  if (typeof context === "string" && !relative(path, resolve(dir, context)).startsWith(".."))
    return "is not mounted: the image holds the code as it was built";
  return existsSync(path) ? undefined : "is not there; it becomes no file";
}

const modeOf = (file: string): Table => ((statSync(file).mode & 0o111) === 0 ? {} : { mode: 0o755 });

/** Undefined when there are too many. */
function filesBelow(path: string): string[] | undefined {
  if (statSync(path).isFile()) return statSync(path).size > MOST_FILE_BYTES ? undefined : [path];
  const found: string[] = [];
  let bytes = 0;
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    bytes += statSync(file).size;
    if (found.push(file) > MOST_FILES || bytes > MOST_FILE_BYTES) return undefined;
  }
  return found.sort();
}

/** `configs` become files with their text, `secrets` files with a secret of the app, which `secrets` collects. */
export function documentsFor(
  project: Project,
  { name, service }: { name: string; service: Table },
  secrets: Record<string, string>,
): Table[] {
  const uses = (kind: Kind): Use[] => [service[kind] ?? []].flat().map((given) => useOf(project, name, kind, given));
  return [
    ...uses("configs").map(({ guest_path, content, where }) => ({
      guest_path,
      raw_value: (content ?? noContent(where)).toString("base64"),
      processes: [name],
    })),
    ...uses("secrets").map(({ guest_path, content, source }) => {
      const secret_name = content === undefined ? source : `FILE_${source.replaceAll(/\W/g, "_").toUpperCase()}`;
      if (content !== undefined) secrets[secret_name] = content.toString("base64");
      else project.notes.push(`${name}: the secret ${source} is not in the file: ${SET_FIRST.replace("NAME", source)}`);
      return { guest_path, secret_name, processes: [name] };
    }),
  ];
}

const SET_FIRST = "`base64 -w0 FILE | hangar secrets set NAME=-` before the deploy";

type Kind = "secrets" | "configs";

interface Use {
  source: string;
  guest_path: string;
  content: Buffer | undefined;
  where: string;
}

/** The default folder of files without a target. */
const FOLDERS: Record<Kind, string> = { secrets: "/run/secrets", configs: "" };

function useOf(project: Project, name: string, kind: Kind, given: unknown): Use {
  const use = isTable(given) ? given : { source: plain(given) };
  const source = plain(use["source"]);
  const where = `${project.path}: services.${name}.${kind}: ${source}`;
  const found = project[kind][source];
  if (found === undefined) throw new UsageError(`${where} is not among the ${kind} of the file`);
  const target = plain(use["target"] ?? source);
  const guest_path = target.startsWith("/") ? target : `${FOLDERS[kind]}/${target}`;
  return { source, guest_path, content: contentOf(project, tableOf(found, where), where), where };
}

/** Undefined for an external one. */
function contentOf({ dir, variables }: Project, given: Table, where: string): Buffer | undefined {
  const { file, content, environment } = given;
  if (given["external"] === true) return undefined;
  if (typeof content === "string") return Buffer.from(content);
  if (typeof environment === "string")
    return Buffer.from(variables[environment] ?? noContent(`${where}: ${environment} is not set, so it`));
  if (typeof file !== "string") return noContent(where);
  const path = resolve(dir, file);
  return existsSync(path) ? readFileSync(path) : noContent(`${where}: ${file} is not there, so it`);
}

function noContent(what: string): never {
  throw new UsageError(`${what} has no content: file, environment or content names it`);
}
