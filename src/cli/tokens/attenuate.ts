import {
  ACTIONS,
  type Action,
  type Actions,
  ALL_ACTIONS,
  type Caveat,
  caveatWords,
  fromWire,
  toWire,
} from "#core/caveats.ts";
import { systemClock } from "#core/clock.ts";
import { parseDuration } from "#core/durations.ts";
import { attenuate, MacaroonError, parse, serialize } from "#core/macaroon.ts";
import { type Input, listOption, textOption, UsageError, type Verb } from "../verb.ts";
import { givenToken } from "./given.ts";

export const tokensAttenuate: Verb = {
  words: "tokens attenuate",
  summary: "Narrow a token offline (attenuation)",
  arguments: [["[token]", "the token to narrow (default: the one in HANGAR_TOKEN; - reads it from stdin)"]],
  options: [
    ["--actions <list>", "only these: read, write, create, delete, control"],
    ["--app <name...>", "only these apps; name:read,write narrows further"],
    ["--machine <id...>", "only these machines; id:read,control narrows further"],
    ["--expires <duration>", "only until then, for example 1h"],
    ["--from-machine <id>", "only from inside this machine"],
    ["--caveat <json...>", 'any caveat as JSON, also {"type":"any","of":[[…],[…]]}'],
  ],
  examples: ["hangar tokens attenuate $TOKEN --app web --actions read --expires 1h"],
  async run(context, input) {
    const caveats = caveatsOf(input);
    if (caveats.length === 0) throw new UsageError("name a restriction, for example --actions read");
    const text = await givenToken(context, input);
    try {
      const narrower = attenuate(parse(text), caveats);
      const token = serialize(narrower);
      parse(token); // The size limits apply to the result, too.
      context.say(caveats.map((caveat) => `narrowed: ${caveatWords(caveat)}`).join("\n"));
      return { data: { token, rights: narrower.caveats.map(caveatWords) }, text: token };
    } catch (thrown) {
      if (thrown instanceof MacaroonError)
        throw new UsageError(`${thrown.message}; a full-access token cannot be narrowed`);
      throw thrown;
    }
  },
};

function caveatsOf(input: Input): Caveat[] {
  const actions = textOption(input, "actions");
  const apps = listOption(input, "app");
  const machines = listOption(input, "machine");
  const expires = textOption(input, "expires");
  const from = textOption(input, "fromMachine");
  return [
    ...(actions === undefined ? [] : [{ type: "actions" as const, actions: actionsOf(actions) }]),
    ...(apps.length === 0 ? [] : [{ type: "apps" as const, apps: mapOf(apps) }]),
    ...(machines.length === 0 ? [] : [{ type: "machines" as const, machines: mapOf(machines) }]),
    ...(expires === undefined ? [] : [until(expires)]),
    ...(from === undefined ? [] : [{ type: "from_machine" as const, machine: from }]),
    ...listOption(input, "caveat").map(jsonCaveat),
  ];
}

function actionsOf(list: string): Actions {
  return list.split(",").reduce((sum, word) => {
    if (!Object.hasOwn(ACTIONS, word))
      throw new UsageError(`${word} is not an action; there are ${Object.keys(ACTIONS).join(", ")}`);
    return sum | ACTIONS[word as Action];
  }, 0);
}

function mapOf(items: readonly string[]): Record<string, Actions> {
  return Object.fromEntries(
    items.map((item) => {
      const [name = "", actions] = item.split(":");
      return [name, actions === undefined ? ALL_ACTIONS : actionsOf(actions)];
    }),
  );
}

function until(duration: string): Caveat {
  const ms = parseDuration(duration);
  if (ms === undefined) throw new UsageError(`${duration} is not a duration such as 1h or 30d`);
  const now_s = Math.floor(systemClock.now() / 1000);
  // This host's clock may be ahead of the platform's.
  return { type: "validity", not_before_s: 0, not_after_s: now_s + Math.ceil(ms / 1000) };
}

function jsonCaveat(text: string): Caveat {
  let wire: unknown;
  try {
    wire = toWire(JSON.parse(text) as Caveat);
  } catch {
    throw new UsageError(`this is not a caveat in JSON: ${text}`);
  }
  const caveat = fromWire(wire, 0);
  if (caveat.type === "unknown") throw new UsageError(`this is not a caveat of a known kind: ${text}`);
  return caveat;
}
