/** All commands as a commander program: help, errors, and every option syntax. */
import { Command, CommanderError } from "commander";
import { VERSION } from "#core/version.ts";
import { namesAppFirst, optional } from "./app-first.ts";
import { complete } from "./complete.ts";
import { createContext, type GlobalOptions } from "./context.ts";
import { aliasesOf, NOUNS } from "./nouns.ts";
import { GLOBAL_OPTIONS, optionsOf } from "./options.ts";
import { isPicked } from "./pick.ts";
import type { Typed } from "./run-verb.ts";
import { suggestion } from "./suggest.ts";
import { print } from "./terminal-text.ts";
import type { Verb } from "./verb.ts";
import { allVerbs, groupOf } from "./verbs.ts";

/** Runs a command with its parsed arguments. */
type Run = (verb: Verb, typed: Typed) => Promise<void>;

/** Thrown after commander has printed help or an error. */
export class CommandLineEnd extends Error {
  override readonly name = "CommandLineEnd";
  readonly is_mistake: boolean;

  constructor(cause: CommanderError) {
    super(cause.message.replace(/^error: /, ""), { cause });
    this.is_mistake = cause.exitCode !== 0;
  }
}

/** Parses the command line after `hangar` and runs its command. */
export async function runProgram(verbs: readonly Verb[], argv: readonly string[], run: Run): Promise<void> {
  try {
    await build(verbs, run).parseAsync(argv, { from: "user" });
  } catch (thrown) {
    throw thrown instanceof CommanderError ? new CommandLineEnd(thrown) : thrown;
  }
}

function build(verbs: readonly Verb[], run: Run): Command {
  const program = new Command("hangar")
    .description("Run machines on your own box: containers that start in milliseconds, suspend and wake on a request.")
    .version(VERSION)
    .showSuggestionAfterError(true)
    .exitOverride();
  suggestCommands(program);
  for (const [flags, words] of GLOBAL_OPTIONS) program.option(flags, words);
  program.addHelpText(
    "before",
    "Examples:\n  hangar up\n  hangar run hangar/hello\n  hangar status --app hello\n  hangar logs hello --follow\n  hangar doctor\n",
  );
  const nouns = new Map<string, Command>();
  for (const verb of verbs) {
    const [first = "", second] = verb.words.split(" ");
    if (second === undefined) {
      // `proxy` is a command, and has `proxy reload` below it.
      nouns.set(first, addVerb(program, first, verb, run).helpGroup(groupOf(first)));
      continue;
    }
    const noun = nouns.get(first) ?? addNoun(program, first);
    nouns.set(first, noun);
    addVerb(noun, second, verb, run);
  }
  program
    .command("__complete", { hidden: true })
    .argument("[words...]")
    .action(async (words: string[], _options: unknown, command: Command) => {
      const context = createContext(command.optsWithGlobals<GlobalOptions>(), process.env, allVerbs);
      const found = await complete(context, await allVerbs(), words);
      print(found.join("\n"));
    });
  return program;
}

function addNoun(program: Command, name: string): Command {
  const noun = program
    .command(name)
    .aliases(aliasesOf(name))
    .description(NOUNS[name] ?? name)
    .helpGroup(groupOf(name))
    .exitOverride();
  suggestCommands(noun);
  return noun;
}

/** Replaces commander's suggestions for an unknown command: they take `ps` for `ips` and `open` for `token`. */
function suggestCommands(parent: Command): void {
  const corrected = (text: string): string =>
    text.replace(/(unknown command '(.*?)')(?:\n\(Did you mean .*\))?/, (_, what: string, typed: string) => {
      const known = parent.commands.map((command) => command.name());
      return what + suggestion(typed, known, { synonyms: parent.parent === null });
    });
  parent.configureOutput({ outputError: (text, write) => write(corrected(text)) });
  parent.exitOverride((error) => {
    error.message = corrected(error.message);
    throw error;
  });
}

function addVerb(parent: Command, name: string, verb: Verb, run: Run): Command {
  const command = parent
    .command(name, { isDefault: verb.is_default === true })
    .aliases(aliasesOf(name))
    .description(verb.summary)
    .exitOverride();
  command.addHelpText("before", `Examples:\n${verb.examples.map((example) => `  ${example}`).join("\n")}\n`);
  const prompts = namesAppFirst(verb) || isPicked(verb);
  for (const [argument, words] of verb.arguments ?? [])
    command.argument(prompts ? optional(argument) : argument, words);
  for (const [flags, words] of optionsOf(verb)) command.option(flags, words);
  if (verb.passes_on) command.allowUnknownOption();
  if (verb.details) command.addHelpText("after", `\n${verb.details()}`);
  command.action(async (...given: unknown[]) => {
    const positional = given.slice(0, -2) as Typed["arguments"];
    await run(verb, { arguments: positional, options: command.optsWithGlobals<Typed["options"]>() });
  });
  return command;
}
