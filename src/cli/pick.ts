/** Prompts for a missing argument on a terminal; elsewhere a missing argument is a usage error. */
import { createInterface } from "node:readline/promises";
import { namesAppFirst } from "./app-first.ts";
import { type LiveName, liveNames } from "./live-names.ts";
import { table } from "./output.ts";
import { type Context, type Input, missingArgument, UsageError, type Verb } from "./verb.ts";

const PATIENCE_MS = 10_000;
const SHOWN_MAX = 50;
const LISTED = /^\d{1,2}$/;

/** Commands whose only required argument is the name of an existing resource. */
export const isPicked = ({ arguments: own = [], completes }: Verb): boolean =>
  completes !== undefined && own[0]?.[0].startsWith("<") === true && !own[1]?.[0].startsWith("<");

/** The arguments, with the one that the user has chosen. */
export async function picked(context: Context, verb: Verb, { args, options }: Input): Promise<Input["args"]> {
  const elsewhere = namesAppFirst(verb) && options["app"] !== undefined;
  if (!isPicked(verb) || args[0] !== undefined || elsewhere) return args;
  const is_person = options["json"] !== true && process.stdin.isTTY && process.stderr.isTTY;
  if (!is_person) missingArgument(wanted(verb));
  return [await pick(context, verb), ...args.slice(1)];
}

const wanted = ({ arguments: own }: Verb): string => own?.[0]?.[0].slice(1, -1) ?? "";

async function pick({ client, say }: Context, verb: Verb): Promise<string> {
  const { completes = "apps" } = verb;
  const names = await liveNames(client, completes, AbortSignal.timeout(PATIENCE_MS));
  const what = wanted(verb);
  if (names.length === 0) throw new UsageError(`missing required argument '${what}', and there are no ${completes}`);
  const rows = names.slice(0, SHOWN_MAX).map(({ name, about }, at) => [String(at + 1), name, about]);
  say(table(["", completes, ""], rows));
  if (names.length > SHOWN_MAX) say(`… and ${names.length - SHOWN_MAX} more, by name`);
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // End of input cancels the prompt.
    const closed = new Promise<string>((resolve) => reader.once("close", () => resolve("")));
    return chosen(names, await Promise.race([reader.question(`which ${what}? number or name: `), closed]), what);
  } finally {
    reader.close();
  }
}

/** Accepts a number of the list, a name, an id, or a unique prefix. */
export function chosen(names: readonly LiveName[], answer: string, what: string): string {
  const text = answer.trim();
  if (text === "") throw new UsageError(`missing required argument '${what}'`);
  const is_number = LISTED.test(text);
  const listed = is_number ? names.slice(0, SHOWN_MAX)[Number(text) - 1] : undefined;
  const exact = names.find(({ name, id }) => name === text || id === text) ?? listed;
  // A number outside the list is an error, even when an id begins with it.
  const begun = is_number ? [] : names.filter(({ name, id }) => name.startsWith(text) || id?.startsWith(text));
  const found = exact ?? (begun.length === 1 ? begun[0] : undefined);
  if (!found) throw new UsageError(`${text} is ${begun.length > 1 ? "more than one" : "none"} of them`);
  return found.id ?? found.name;
}
