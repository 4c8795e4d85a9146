/**
 * Command lines in the plainest form, `hangar noun verb argument --option value`, are read here: commander takes longer to
 * load and to set up than most commands run. Whatever is not certain to be meant so is left to commander, which knows
 * every other way to write it, the help and the words for mistakes.
 */
import { namesAppFirst } from "./app-first.ts";
import { isWord } from "./nouns.ts";
import { optionsOf } from "./options.ts";
import { isPicked } from "./pick.ts";
import type { Typed } from "./run-verb.ts";
import type { Verb } from "./verb.ts";

/** The command that the words after `hangar` name, and what it is given; undefined when commander must read them. */
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

/** Its flags as they are typed: the name of the option, and whether a value comes after it. */
function flagsOf(verb: Verb): Map<string, { name: string; takes_value: boolean }> | undefined {
  const flags = new Map<string, { name: string; takes_value: boolean }>();
  for (const [text] of optionsOf(verb)) {
    const [, short, long = "", value] = /^(?:(-\w), )?--([\w-]+)(?: (\S+))?$/.exec(text) ?? [];
    // Those have a value when they are not typed.
    if (long === "" || long.startsWith("no-")) return undefined;
    // Of what may be given several times or without a value, commander knows where it ends.
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

/** Arguments in their places; undefined when there are too many or too few, or the last one takes several. */
function inPlaces(verb: Verb, given: readonly string[]): Typed["arguments"] | undefined {
  const own = (verb.arguments ?? []).map(([name]) => name);
  const prompts = namesAppFirst(verb) || isPicked(verb);
  const needed = prompts ? 0 : own.filter((name) => name.startsWith("<")).length;
  if (own.some((name) => name.includes("..."))) return undefined;
  if (given.length > own.length || given.length < needed) return undefined;
  return own.map((_, at) => given[at]);
}
