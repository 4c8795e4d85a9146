import type { Client } from "#client/client.ts";
import type { Kind } from "./name-kinds.ts";

/** One command: `hangar <noun> <verb>`. The parser, the help and the completion are generated from these. */
export interface Verb {
  /** `apps create`, or one word for a command without a noun. */
  words: string;
  summary: string;
  /** `<app>`, `[token]`, `<pairs...>`, with descriptions. */
  arguments?: readonly (readonly [name: string, description: string])[];
  /** `--org <slug>`, with descriptions. */
  options?: readonly (readonly [flags: string, description: string])[];
  /** Shown first in the help. A test runs each of them. */
  examples: readonly string[];
  /** Kind of names that complete the first argument. */
  completes?: Kind;
  /** Refreshed on a terminal, unless --once. */
  live?: boolean;
  /** Further text at the end of the help. */
  details?: () => string;
  /** Runs when only the noun is typed: `hangar releases`. */
  is_default?: boolean;
  /** Prints a list: --limit and --all are added to its options. */
  lists?: boolean;
  /** Unknown options are passed to the program that it runs. */
  passes_on?: boolean;
  run(context: Context, input: Input): Promise<Result>;
}

/** Arguments by position, options by name; commander has checked that required ones are there. */
export interface Input {
  args: readonly (string | undefined)[];
  rest: readonly string[];
  options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
  /** Where `--app` comes from when the command line does not name it: HANGAR_APP, or the path of a file. */
  app_from?: string;
}

export interface Result {
  /** The output of --json. */
  data: unknown;
  /** The output for people. */
  text: string;
  /** The rest of a long text, streamed. */
  more?: AsyncIterable<string>;
  /** The text is raw output of a program in a machine: control characters are not escaped. */
  raw?: boolean;
  exit?: number;
}

export interface Context {
  client: Client;
  /** The token in use; throws a usage error when there is none. */
  token(): string;
  data_dir: string;
  /** Whether the chosen platform is that of the data dir, and not another one (HANGAR_URL, `--url`, a context). */
  is_of_data_dir: boolean;
  /** Why this platform was chosen, for display. */
  chosen: string;
  /** Prints progress and notes on stderr, so that stdout stays clean. */
  say(text: string): void;
  stdin(): Promise<string>;
  /** Every command there is. */
  allVerbs(): Promise<readonly Verb[]>;
  /**
   * Runs a program (a file under src/) with these arguments; `quiet` returns its output instead of printing it.
   */
  runProgram(
    file: string,
    args: readonly string[],
    how: "foreground" | "quiet",
  ): Promise<{ exit: number; text: string }>;
}

/** A command line error. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The text of an option, or undefined. */
export function textOption({ options }: Input, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

/** The whole number of an option, or undefined. Only for options of one word, whose flag is `--name`. */
export function numberOption(input: Input, name: string): number | undefined {
  const text = textOption(input, name);
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--${name} is a whole number, not ${text}`);
  return Number(text);
}

const WHICH_APP = 'name the app: --app <name>, HANGAR_APP, or app = "name" in a hangar.toml in this folder';

/** Refuses a command line without a required argument. */
export function missingArgument(name: string): never {
  throw new UsageError(`missing required argument '${name}'${name === "app" ? `; ${WHICH_APP}` : ""}`);
}

/** The app of --app or the default app, for commands that require one. */
export function neededApp(input: Input): string {
  const app = textOption(input, "app");
  return app || missingArgument("app");
}

/** The app of a list. The default app is ignored when --org is given. */
export function filterApp(input: Input): string | undefined {
  const everything = input.app_from !== undefined && input.options["org"] !== undefined;
  return everything ? undefined : textOption(input, "app");
}

/** All values of an option that may be given several times. */
export function listOption({ options }: Input, name: string): readonly string[] {
  const value = options[name];
  if (Array.isArray(value)) return value as string[];
  return typeof value === "string" ? [value] : [];
}

/** The first argument, which commander has required. */
export function firstArgument({ args }: Input): string {
  return args[0] ?? "";
}
