/** The default app of a command: that of HANGAR_APP, else that of the app file in this folder. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { APP_FILES } from "./app-file/names.ts";
import { namesAppFirst } from "./app-first.ts";
import type { Input, Verb } from "./verb.ts";

/** Describes the default in the help. */
export const APP_DEFAULT = `default: HANGAR_APP, else the app of ${APP_FILES.join(" or ")} in this folder`;

export const APP_FLAGS = "-a, --app <app>";
/** Options that name the file to read. */
const FILE_FLAGS: Record<string, string> = { "-f, --file <path>": "file", "-c, --config <path>": "config" };

/** Commands with an app argument but without a default, and why. */
const NAMED_ONLY: Record<string, string> = {
  "apps delete": "lists what is permanently deleted",
  "webhooks create": "for every app, unless --app is given",
};

const flagsOf = ({ options = [] }: Verb): string[] => options.map(([flags]) => flags);

/** Whether the command is about an app, named or not. */
export const hasDefaultApp = (verb: Verb): boolean =>
  (namesAppFirst(verb) || flagsOf(verb).includes(APP_FLAGS)) && NAMED_ONLY[verb.words] === undefined;

export interface DefaultApp {
  name: string;
  /** `HANGAR_APP`, or the path of the file. */
  from: string;
}

/** Undefined when the command names an app, takes none, or there is no default. */
export async function defaultApp(
  verb: Verb,
  { args, options }: Pick<Input, "args" | "options">,
  { env, cwd }: { env: Readonly<Record<string, string | undefined>>; cwd: string },
): Promise<DefaultApp | undefined> {
  if (!hasDefaultApp(verb) || options["app"] !== undefined || isNamedFirst(verb, args)) return undefined;
  const named = env["HANGAR_APP"];
  if (named) return { name: named, from: "HANGAR_APP" };
  const path = namedFile(verb, options, cwd) ?? APP_FILES.map((name) => join(cwd, name)).find(existsSync);
  if (path === undefined) return undefined;
  // Loaded on demand, because parsing takes longer than most commands.
  const { appNameIn } = await import("./app-file/read.ts");
  const name = appNameIn(path);
  return name === undefined ? undefined : { name, from: path };
}

/** A leading app argument is given when no argument is missing. */
function isNamedFirst(verb: Verb, args: Input["args"]): boolean {
  const needed = (verb.arguments ?? []).filter(([name]) => name.startsWith("<")).length;
  return namesAppFirst(verb) && args.filter((argument) => argument !== undefined).length >= needed;
}

function namedFile(verb: Verb, options: Input["options"], cwd: string): string | undefined {
  const paths = flagsOf(verb).map((flags) => options[FILE_FLAGS[flags] ?? ""]);
  const path = paths.find((value) => typeof value === "string");
  return path === undefined ? undefined : resolve(cwd, path);
}
