/** The `hangar` command: nouns and verbs, made into a program. */
import { constants } from "node:os";
import { Command, CommanderError } from "commander";
import { ClientError, type Outgoing } from "#client/client.ts";
import { messageOf } from "#core/assert.ts";
import { VERSION } from "#core/version.ts";
import { defaultApp } from "./app-default.ts";
import { namesAppFirst, optional, withApp } from "./app-first.ts";
import { complete } from "./complete.ts";
import { asCurl, createContext, type GlobalOptions } from "./context.ts";
import { NotSent, tellsItself } from "./dry-run.ts";
import { aliasesOf, NOUNS } from "./nouns.ts";
import { GLOBAL_OPTIONS, optionsOf } from "./options.ts";
import { errorText } from "./output.ts";
import { isPicked, picked } from "./pick.ts";
import { jsonText, print, printError } from "./terminal-text.ts";
import { type Input, type Result, UsageError, type Verb } from "./verb.ts";
import { allVerbs, groupOf, verbsFor } from "./verbs.ts";
import { isWatched, watchResponses } from "./watch.ts";

/** Exit codes: scripts branch on these. */
const EXIT = { ok: 0, failure: 1, usage: 2, auth: 3, not_found: 4, conflict: 5, timeout: 6, capacity: 7 } as const;
const EXIT_BY_STATUS: Record<number, number> = {
  400: EXIT.usage,
  401: EXIT.auth,
  403: EXIT.auth,
  404: EXIT.not_found,
  408: EXIT.timeout,
  409: EXIT.conflict,
  412: EXIT.capacity,
  422: EXIT.usage,
};

function build(verbs: readonly Verb[]): Command {
  const program = new Command("hangar")
    .description("Run machines on your own box: containers that start in milliseconds, suspend and wake on a request.")
    .version(VERSION)
    .showSuggestionAfterError(true)
    .exitOverride();
  for (const [flags, words] of GLOBAL_OPTIONS) program.option(flags, words);
  program.addHelpText(
    "before",
    "Examples:\n  hangar up\n  hangar run hangar/hello\n  hangar status --app hello\n  hangar logs hello --follow\n  hangar doctor\n",
  );
  const nouns = new Map<string, Command>();
  for (const verb of verbs) {
    const [first = "", second] = verb.words.split(" ");
    if (second === undefined) {
      addVerb(program, first, verb).helpGroup(groupOf(first));
      continue;
    }
    const noun = nouns.get(first) ?? addNoun(program, first);
    nouns.set(first, noun);
    addVerb(noun, second, verb);
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
  return program
    .command(name)
    .aliases(aliasesOf(name))
    .description(NOUNS[name] ?? name)
    .helpGroup(groupOf(name))
    .exitOverride();
}

function addVerb(parent: Command, name: string, verb: Verb): Command {
  const command = parent.command(name).aliases(aliasesOf(name)).description(verb.summary).exitOverride();
  command.addHelpText("before", `Examples:\n${verb.examples.map((example) => `  ${example}`).join("\n")}\n`);
  const app_first = namesAppFirst(verb);
  const asked = app_first || isPicked(verb);
  for (const [argument, words] of verb.arguments ?? []) command.argument(asked ? optional(argument) : argument, words);
  for (const [flags, words] of optionsOf(verb)) command.option(flags, words);
  if (verb.passes_on) command.allowUnknownOption();
  if (verb.details) command.addHelpText("after", `\n${verb.details()}`);
  command.action(async (...given: unknown[]) => {
    const positional = given.slice(0, -2) as (string | string[] | undefined)[];
    const given_options = command.optsWithGlobals<GlobalOptions & Input["options"]>();
    const rest = positional.flatMap((argument) => (Array.isArray(argument) ? argument : []));
    const plain = positional.map((argument) => (Array.isArray(argument) ? argument[0] : argument));
    const place = { env: process.env, cwd: process.cwd() };
    const app = await defaultApp(verb, { args: plain, options: given_options }, place);
    const options = app ? { ...given_options, app: app.name } : given_options;
    const context = () =>
      createContext(tellsItself(verb) ? { ...options, dryRun: false } : options, process.env, allVerbs);
    const named = await picked(context(), verb, { args: plain, rest, options });
    const args = app_first ? withApp(verb, named, options) : named;
    const run = () => verb.run(context(), { args, rest, options, ...(app ? { app_from: app.from } : {}) });
    if (isWatched(verb, options)) return await watchResponses(run, options.json === true);
    const result = await run();
    if (options.json) printJson(result.data);
    else await printText(result);
    process.exitCode = result.exit ?? EXIT.ok;
  });
  return command;
}

async function printText({ text, raw, more }: Result): Promise<void> {
  if (raw && text !== "") process.stdout.write(`${text}\n`);
  else if (text !== "") print(text);
  if (more) for await (const lines of more) print(lines);
}

// What comes after -- are words for a machine, not for us.
const wants_json = process.argv.join("\0").split("\0--\0")[0]?.split("\0").includes("--json") === true;

const printJson = (data: unknown): void => void process.stdout.write(`${jsonText(data, 2)}\n`);

/** What a dry run would have sent. */
function showHeldBack(request: Outgoing): void {
  const { method, url, body } = request;
  const { pathname, search } = new URL(url);
  // What is uploaded is no JSON; its stand-in says so.
  const sent = body?.startsWith("{") ? (JSON.parse(body) as unknown) : body;
  if (wants_json) printJson({ dry_run: true, method, path: pathname + search, body: sent });
  else print(`would send: ${asCurl(request)}`);
}

function report(thrown: unknown): void {
  if (thrown instanceof NotSent) {
    showHeldBack(thrown.request);
    return;
  }
  if (thrown instanceof CommanderError) {
    // Commander has printed it; help and version are not mistakes.
    process.exitCode = thrown.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (wants_json && thrown.exitCode !== 0)
      printJson({ error: thrown.message.replace(/^error: /, ""), status: "usage" });
    return;
  }
  const body = thrown instanceof ClientError ? thrown.body : {};
  const http = thrown instanceof ClientError ? thrown.http : 0;
  process.exitCode = thrown instanceof UsageError ? EXIT.usage : (EXIT_BY_STATUS[http] ?? EXIT.failure);
  if (wants_json) printJson({ error: messageOf(thrown), ...body });
  else printError(errorText(messageOf(thrown), body));
}

// Whoever reads may stop before the end, as `head` does. That is no mistake, and ends us as it ends any program.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(128 + constants.signals.SIGPIPE);
});

// An older Node has started this one, and was killed: whoever did that thinks that this has ended.
if (process.connected) {
  process.once("disconnect", () => process.exit(128 + constants.signals.SIGTERM));
  process.channel?.unref();
}

/** It takes no command to answer this: loading all of them takes three times as long. */
const asksVersion = process.argv.length === 3 && ["--version", "-V"].includes(process.argv[2] ?? "");

// No `await` out here: the bundle that is loaded fastest is not an ES module (scripts/bundle-cli.mjs).
if (asksVersion) process.stdout.write(`${VERSION}\n`);
else
  void verbsFor(process.argv[2] ?? "", process.argv[3] ?? "")
    .then((verbs) => build(verbs).parseAsync())
    .catch(report);
