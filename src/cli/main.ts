/** The `hangar` command: nouns and verbs, made into a program. */
import { Command, CommanderError } from "commander";
import { ClientError } from "#client/client.ts";
import { messageOf } from "#core/assert.ts";
import { VERSION } from "#core/version.ts";
import { namesAppFirst, optional, withApp } from "./app-first.ts";
import { complete } from "./complete.ts";
import { createContext, type GlobalOptions } from "./context.ts";
import { errorText } from "./output.ts";
import { type Input, UsageError, type Verb } from "./verb.ts";
import { VERBS } from "./verbs.ts";
import { isReading, isWatched, watchAnswers } from "./watch.ts";

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

/** Short names of nouns that are typed often. */
const ALIASES: Record<string, string> = { machines: "m" };

const NOUNS: Record<string, string> = {
  auth: "Who is calling",
  tokens: "Tokens of an organization",
  orgs: "Organizations",
  apps: "Apps",
  secrets: "An app's secrets",
  images: "Images that machines boot from",
  machines: "Machines",
  connectors: "Providers that machines may call, and who may",
  oidc: "Identity tokens of machines",
  volumes: "Disks that machines mount",
  snapshots: "What a volume held at a moment",
  metrics: "What is measured, asked in MetricsQL or PromQL",
  postgres: "PostgreSQL in a machine of yours",
  ips: "Addresses of apps; an app without one is closed",
  certs: "Host names of apps and their certificates",
  proxy: "The front door",
  hosts: "Boxes that machines run on",
  db: "Replicated SQLite",
  context: "Platforms by name",
};

function build(): Command {
  const program = globalOptions(new Command("hangar"))
    .description("Machines on your own box.")
    .version(VERSION)
    .showSuggestionAfterError(true)
    .exitOverride();
  program.addHelpText(
    "before",
    "Examples:\n  hangar apps create web\n  hangar tokens create readonly --name grafana\n  hangar doctor\n",
  );
  const nouns = new Map<string, Command>();
  for (const verb of VERBS) {
    const [first = "", second] = verb.words.split(" ");
    if (second === undefined) {
      addVerb(program, first, verb);
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
      const found = await complete(createContext(command.optsWithGlobals<GlobalOptions>(), process.env), VERBS, words);
      process.stdout.write(found.map((word) => `${word}\n`).join(""));
    });
  return program;
}

function addNoun(program: Command, name: string): Command {
  const noun = program
    .command(name)
    .description(NOUNS[name] ?? name)
    .exitOverride();
  const alias = ALIASES[name];
  return alias ? noun.alias(alias) : noun;
}

function globalOptions(command: Command): Command {
  return command
    .option("--json", "print JSON and nothing else")
    .option("--url <address>", "the platform (default: the one of the data dir, HANGAR_URL)")
    .option("--token <token>", "the token (default: HANGAR_TOKEN, else the data dir's)")
    .option("--data-dir <dir>", "the data dir (default: HANGAR_DATA_DIR, else ./.hangar)")
    .option("--context <name>", "a platform of `hangar context list` (default: HANGAR_CONTEXT, else the one in use)")
    .option("--show-request", "print each request as a curl command on stderr");
}

function addVerb(parent: Command, name: string, verb: Verb): void {
  const command = globalOptions(parent.command(name)).description(verb.summary).exitOverride();
  command.addHelpText("before", `Examples:\n${verb.examples.map((example) => `  ${example}`).join("\n")}\n`);
  const app_first = namesAppFirst(verb);
  for (const [argument, words] of verb.arguments ?? [])
    command.argument(app_first ? optional(argument) : argument, words);
  if (app_first) command.option("-a, --app <app>", "the app, instead of as the first argument");
  for (const [flags, words] of verb.options ?? []) command.option(flags, words);
  if (isReading(verb)) command.option("--watch", "again and again until interrupted; a line each time with --json");
  if (verb.live) command.option("--once", "once, also on a terminal");
  command.action(async (...given: unknown[]) => {
    const positional = given.slice(0, -2) as (string | string[] | undefined)[];
    const options = command.optsWithGlobals<GlobalOptions & Input["options"]>();
    const rest = positional.flatMap((argument) => (Array.isArray(argument) ? argument : []));
    const plain = positional.map((argument) => (Array.isArray(argument) ? argument[0] : argument));
    const args = app_first ? withApp(verb, plain, options) : plain;
    const run = () => verb.run(createContext(options, process.env), { args, rest, options });
    if (isWatched(verb, options)) return await watchAnswers(run, options.json === true);
    const { data, text, exit } = await run();
    if (options.json) process.stdout.write(`${JSON.stringify(data, undefined, 2)}\n`);
    else if (text !== "") process.stdout.write(`${text}\n`);
    process.exitCode = exit ?? EXIT.ok;
  });
}

function report(thrown: unknown): void {
  if (thrown instanceof CommanderError) {
    // Commander has printed it; help and version are not mistakes.
    process.exitCode = thrown.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return;
  }
  const body = thrown instanceof ClientError ? thrown.body : {};
  const http = thrown instanceof ClientError ? thrown.http : 0;
  process.exitCode = thrown instanceof UsageError ? EXIT.usage : (EXIT_BY_STATUS[http] ?? EXIT.failure);
  if (process.argv.includes("--json"))
    process.stdout.write(`${JSON.stringify({ error: messageOf(thrown), ...body }, undefined, 2)}\n`);
  else process.stderr.write(`${errorText(messageOf(thrown), body)}\n`);
}

try {
  await build().parseAsync();
} catch (thrown) {
  report(thrown);
}
