/** Runs a command with its parsed arguments, and prints its result. */
import { defaultApp } from "./app-default.ts";
import { namesAppFirst, withApp } from "./app-first.ts";
import { createContext, type GlobalOptions } from "./context.ts";
import { tellsItself } from "./dry-run.ts";
import { picked } from "./pick.ts";
import { print, printJson } from "./terminal-text.ts";
import type { Input, Result, Verb } from "./verb.ts";
import { allVerbs } from "./verbs.ts";
import { isWatched, watchResponses } from "./watch.ts";

/** The parsed arguments and options of a command. */
export interface Typed {
  /** By position; the last one is a list when it is variadic. */
  arguments: readonly (string | readonly string[] | undefined)[];
  options: GlobalOptions & Input["options"];
}

export async function runVerb(verb: Verb, typed: Typed): Promise<void> {
  const rest = typed.arguments.flatMap((argument) => (typeof argument === "object" ? argument : []));
  const plain = typed.arguments.map((argument) => (typeof argument === "object" ? argument[0] : argument));
  const place = { env: process.env, cwd: process.cwd() };
  const app = await defaultApp(verb, { args: plain, options: typed.options }, place);
  const options = app ? { ...typed.options, app: app.name } : typed.options;
  const context = () =>
    createContext(tellsItself(verb) ? { ...options, dryRun: false } : options, process.env, allVerbs);
  const named = await picked(context(), verb, { args: plain, rest, options });
  const args = namesAppFirst(verb) ? withApp(verb, named, options) : named;
  const run = () => verb.run(context(), { args, rest, options, ...(app ? { app_from: app.from } : {}) });
  if (isWatched(verb, options)) return await watchResponses(run, options.json === true);
  const result = await run();
  if (options.json) printJson(result.data);
  else await printText(result);
  process.exitCode = result.exit ?? 0;
}

async function printText({ text, raw, more }: Result): Promise<void> {
  if (raw && text !== "") process.stdout.write(`${text}\n`);
  else if (text !== "") print(text);
  if (more) for await (const lines of more) print(lines);
}
