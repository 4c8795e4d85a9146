import { liveNames } from "./live-names.ts";
import type { Kind } from "./name-kinds.ts";
import { isWord } from "./nouns.ts";
import { GLOBAL_OPTIONS, type Option, optionsOf } from "./options.ts";
import type { Context, Verb } from "./verb.ts";

/** Options whose value is a resource name. */
const NAMED: Record<string, Kind> = {
  "--app": "apps",
  "-a": "apps",
  "--org": "orgs",
  "--context": "contexts",
  "--machine": "machines",
  "--volume": "volumes",
};

/** Options whose description begins with all values: `rolling, immediate, canary or bluegreen (default: …)`. */
const CHOICES = /^(?:[\w-]+, )*[\w-]+ or [\w-]+/;

/** Timeout, so that an unresponsive platform does not block the shell. */
const PATIENCE_MS = 1000;

/** Completions of `typed`, whose last argument is partial or empty. */
export async function complete(
  { client }: Context,
  verbs: readonly Verb[],
  typed: readonly string[],
): Promise<string[]> {
  const begun = typed.at(-1) ?? "";
  const plain = typed.slice(0, -1).filter((word) => !word.startsWith("-"));
  const verb = verbOf(verbs, plain);
  const options = verb ? optionsOf(verb) : GLOBAL_OPTIONS;
  const flags = ["--help", ...options.map(([flag]) => flag)];
  const before = withoutValues(typed.slice(0, -1), flags);
  const value_of = typed.at(-2) ?? "";
  const live = async (kind: Kind): Promise<string[]> => {
    const found = await liveNames(client, kind, AbortSignal.timeout(PATIENCE_MS)).catch(() => []);
    return found.flatMap(({ name, id }) => (id === undefined ? [name] : [id, name]));
  };
  const candidates = takesValue(flags, value_of)
    ? await (NAMED[value_of] ? live(NAMED[value_of]) : choicesOf(options, value_of))
    : begun.startsWith("-")
      ? flags.flatMap((flag) => flag.match(/--[\w-]+/g) ?? [])
      : [...nextWords(verbs, before), ...(isFirstArgument(verb, before) ? await live(verb.completes) : [])];
  return [...new Set(candidates)].filter((word) => word.startsWith(begun)).sort();
}

const takesValue = (flags: readonly string[], word: string): boolean =>
  word.startsWith("-") && flags.some((flag) => flag.includes("<") && flag.split(/[ ,]+/).includes(word));

function choicesOf(options: readonly Option[], word: string): string[] {
  const [flags = "", words = ""] = options.find(([flag]) => takesValue([flag], word)) ?? [];
  const inFlag = /<(\w+(?:\|\w+)+)>/.exec(flags)?.[1];
  return inFlag?.split("|") ?? CHOICES.exec(words)?.[0].split(/, | or /) ?? [];
}

/** The typed words without options and their values. */
const withoutValues = (typed: readonly string[], flags: readonly string[]): string[] =>
  typed.filter((word, at) => !word.startsWith("-") && !takesValue(flags, typed[at - 1] ?? ""));

function verbOf(verbs: readonly Verb[], before: readonly string[]): Verb | undefined {
  return verbs.find(({ words }) => words.split(" ").every((word, at) => isWord(before[at] ?? "", word)));
}

function nextWords(verbs: readonly Verb[], before: readonly string[]): string[] {
  return verbs.flatMap(({ words }) => {
    const all = words.split(" ");
    const next = all[before.length];
    return next && before.every((word, at) => isWord(word, all[at] ?? "")) ? [next] : [];
  });
}

function isFirstArgument(
  verb: Verb | undefined,
  before: readonly string[],
): verb is Verb & { completes: NonNullable<Verb["completes"]> } {
  return verb?.completes !== undefined && before.length === verb.words.split(" ").length;
}
