/** Commands whose first argument is an app accept it as `-a` too, like all others. */
import { type Input, missingArgument, textOption, UsageError, type Verb } from "./verb.ts";

export const namesAppFirst = (verb: Verb): boolean => verb.arguments?.[0]?.[0] === "<app>";

/** Optional for commander, which cannot express that either the argument or the option is required; checked here. */
export const optional = (argument: string): string => argument.replace(/^<(.*)>$/, "[$1]");

/** Puts the app in its argument position. */
export function withApp(verb: Verb, given: Input["args"], options: Input["options"]): Input["args"] {
  const app = textOption({ args: given, rest: [], options }, "app");
  if (app !== undefined && given.at(-1) !== undefined) {
    throw new UsageError(`${given.at(-1)} is one argument too many: --app names the app`);
  }
  const args = app === undefined ? given : [app, ...given.slice(0, -1)];
  const missing = verb.arguments?.find(([name], index) => name.startsWith("<") && args[index] === undefined);
  if (missing) missingArgument(missing[0].slice(1, -1));
  return args;
}
