/** The options of a command: global ones, its own, and those of its kind (lists, dry run, live). */
import { APP_DEFAULT, APP_FLAGS, hasDefaultApp } from "./app-default.ts";
import { namesAppFirst } from "./app-first.ts";
import { changesSomething, tellsItself } from "./dry-run.ts";
import { LIST_OPTIONS } from "./lists.ts";
import type { Verb } from "./verb.ts";
import { isReading } from "./watch.ts";

export type Option = readonly [flags: string, words: string];

export const GLOBAL_OPTIONS: readonly Option[] = [
  ["--json", "print JSON and nothing else"],
  ["--url <address>", "the platform (default: the one of the data dir, HANGAR_URL)"],
  ["--token <token>", "the token (default: HANGAR_TOKEN, else the data dir's)"],
  ["--data-dir <dir>", "the data dir (default: HANGAR_DATA_DIR, else ./.hangar, else the service's)"],
  ["--context <name>", "a platform of `hangar context list` (default: HANGAR_CONTEXT, else the one in use)"],
  ["--show-request", "print each request as a curl command on stderr"],
];

export function optionsOf(verb: Verb): readonly Option[] {
  const known: [boolean, Option][] = [
    [namesAppFirst(verb), [APP_FLAGS, "the app, instead of as the first argument"]],
    ...LIST_OPTIONS.map((option): [boolean, Option] => [verb.lists === true, option]),
    [isReading(verb), ["--watch", "again and again until interrupted; a line each time with --json"]],
    [verb.live === true, ["--once", "once, also on a terminal"]],
    [
      changesSomething(verb) && !tellsItself(verb),
      ["--dry-run", "print the first request that would change something, and do not send it"],
    ],
  ];
  const more = known.flatMap(([applies, option]) => (applies ? [option] : []));
  return [...GLOBAL_OPTIONS, ...[...(verb.options ?? []), ...more].map((option) => withDefault(verb, option))];
}

/** Adds the default app to the help of `--app`. */
const withDefault = (verb: Verb, [flags, words]: Option): Option =>
  flags === APP_FLAGS && hasDefaultApp(verb) ? [flags, `${words} (${APP_DEFAULT})`] : [flags, words];
