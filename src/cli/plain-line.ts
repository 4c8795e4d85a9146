/**
 * Parses command lines of the form `hangar noun verb argument --option value`: commander takes longer to load and to
 * set up than most commands run. Ambiguous lines are left to commander, which knows every other syntax, prints the help
 * and reports errors.
 */
import { namesAppFirst } from "./app-first.ts";
import { isWord } from "./nouns.ts";
import { optionsOf } from "./options.ts";
import { isPicked } from "./pick.ts";
import type { Typed } from "./run-verb.ts";
import type { Verb } from "./verb.ts";

/** The command, with its arguments and options; undefined when commander must parse the line. */
export function readPlainLine(
  verbs: readonly Verb[],
  words: readonly string[],
): { verb: Verb; typed: Typed } | undefined {
  const verb = verbs.find((one) => one.words.split(" ").every((word, at) => isWord(words[at] ?? "", word)));
  if (!verb || verb.passes_on) return undefined;
  const typed = readRest(flagsOf(verb), words.slice(verb.words.split(" ").length));
  const args = typed && inPlaces(verb, typed.arguments);
  return typed && args && { verb, typed: { arguments: args, options: typed.options } };
}

/** Options by flag: the name of the option, and whether it takes a value. */
function flagsOf(verb: Verb): Map<string, { name: string; takes_value: boolean }> | undefined {
  const flags = new Map<string, { name: string; takes_value: boolean }>();
  for (const [text] of optionsOf(verb)) {
    const [, short, long = "", value] = /^(?:(-\w), )?--([\w-]+)(?: (\S+))?$/.exec(text) ?? [];
    // `--no-x` sets a default value when it is absent.
    if (long === "" || long.startsWith("no-")) return undefined;
    // Options with several or optional values are left to commander.
    if (value !== undefined && !/^<[^.>]+>$/.test(value)) continue;
    const option = { name: camelCase(long), takes_value: value !== undefined };
    flags.set(`--${long}`, option);
    if (short) flags.set(short, option);
  }
  return flags;
}

const camelCase = (name: string): string => name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());

function readRest(
  flags: ReturnType<typeof flagsOf>,
  words: readonly string[],
): { arguments: string[]; options: Record<string, string | true> } | undefined {
  const found: { arguments: string[]; options: Record<string, string | true> } = { arguments: [], options: {} };
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (!word.startsWith("-")) {
      found.arguments.push(word);
      continue;
    }
    const flag = flags?.get(word);
    const value = flag?.takes_value ? words[++at] : true;
    if (!flag || value === undefined || (value !== true && value.startsWith("-"))) return undefined;
    found.options[flag.name] = value;
  }
  return flags && found;
}

/** Arguments by position; undefined when there are too many or too few, or the last one is variadic. */
function inPlaces(verb: Verb, given: readonly string[]): Typed["arguments"] | undefined {
  const own = (verb.arguments ?? []).map(([name]) => name);
  const prompts = namesAppFirst(verb) || isPicked(verb);
  const needed = prompts ? 0 : own.filter((name) => name.startsWith("<")).length;
  if (own.some((name) => name.includes("..."))) return undefined;
  if (given.length > own.length || given.length < needed) return undefined;
  return own.map((_, at) => given[at]);
}
