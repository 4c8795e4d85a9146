/** Contexts (named platforms): one file in the user's configuration, readable by that user only. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { closest } from "#core/words.ts";
import { UsageError } from "../verb.ts";

export interface Place {
  url: string;
  token: string;
}

export interface Places {
  current?: string | undefined;
  contexts: Record<string, Place>;
}

type Env = Readonly<Record<string, string | undefined>>;

export const contextsFile = (env: Env): string =>
  join(env["XDG_CONFIG_HOME"] || join(env["HOME"] || homedir(), ".config"), "hangar/contexts.json");

export function readPlaces(env: Env): Places {
  const file = contextsFile(env);
  if (!existsSync(file)) return { contexts: {} };
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Places;
  } catch (thrown) {
    throw new UsageError(`${file} cannot be read (${messageOf(thrown)}); remove it, and add the contexts again`);
  }
}

export function writePlaces(env: Env, places: Places): void {
  const file = contextsFile(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.new`;
  writeFileSync(fresh, `${JSON.stringify(places, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(fresh, file);
}

export function placeNamed(places: Places, name: string): Place {
  const found = Object.hasOwn(places.contexts, name) ? places.contexts[name] : undefined;
  if (found) return found;
  const near = closest(name, Object.keys(places.contexts));
  throw new UsageError(`there is no context ${name}${near ? `; did you mean ${near}?` : ""} (hangar context list)`);
}
