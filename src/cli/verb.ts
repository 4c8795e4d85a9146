import type { Client } from "#client/client.ts";
import type { Kind } from "./name-kinds.ts";

/** One command: `hangar <noun> <verb>`. The program, its help and its completion are made from the list of these. */
export interface Verb {
  /** `apps create`, or one word for what belongs to no noun. */
  words: string;
  summary: string;
  /** `<app>`, `[token]`, `<pairs...>`, with what they are. */
  arguments?: readonly (readonly [name: string, words: string])[];
  /** `--org <slug>`, with what they do. */
  options?: readonly (readonly [flags: string, words: string])[];
  /** Shown first in the help. Every one is run by a test. */
  examples: readonly string[];
  /** What a shell completes the first argument with. */
  completes?: Kind;
  /** Shown again and again on a terminal, unless --once. */
  live?: boolean;
  /** More for the help, under everything else. */
  details?: () => string;
  /** It runs when only its noun is typed: `hangar releases`. */
  is_default?: boolean;
  /** It prints a list: --limit and --all are added to its options. */
  lists?: boolean;
  /** Options that are not known here belong to the program that it runs. */
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
  /** What --json prints. */
  data: unknown;
  /** What a person reads. */
  text: string;
  /** The rest of a long text, as it arrives. */
  more?: AsyncIterable<string>;
  /** The text is what a program in a machine wrote and the person asked for as it is: nothing in it is made visible. */
  raw?: boolean;
  exit?: number;
}

export interface Context {
  client: Client;
  /** The token that would be used; fails in words when there is none. */
  token(): string;
  data_dir: string;
  /** Why it is this platform that is talked to, in words. */
  chosen: string;
  /** Progress and remarks: stderr, so that stdout stays clean. */
  say(text: string): void;
  stdin(): Promise<string>;
  /** Every command there is. */
  allVerbs(): Promise<readonly Verb[]>;
  /**
   * Runs a program of ours (a file under src/) with these arguments; `quiet` gives its words back instead of
   * printing them.
   */
  runProgram(
    file: string,
    args: readonly string[],
    how: "foreground" | "quiet",
  ): Promise<{ exit: number; text: string }>;
}

/** A mistake in how the command was called. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The text of an option, or undefined. */
export function textOption({ options }: Input, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

/** The whole number that an option gives, or undefined. Only for options of one word: `name` is how it is typed, too. */
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

/** The app that --app names, or that stands for it, for verbs that cannot do without. */
export function neededApp(input: Input): string {
  const app = textOption(input, "app");
  return app || missingArgument("app");
}

/** The app whose things are listed. The default is left aside for whoever asks for a whole organization. */
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

/** The first argument, which commander made sure of. */
export function firstArgument({ args }: Input): string {
  return args[0] ?? "";
}
