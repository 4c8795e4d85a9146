import { messageOf } from "#core/assert.ts";
import { facts, table } from "../output.ts";
import { firstArgument, UsageError, type Verb } from "../verb.ts";
import { contextsFile, placeNamed, readPlaces, writePlaces } from "./file.ts";

const NAME: readonly [string, string] = ["<name>", "name of the context"];

const contextAdd: Verb = {
  words: "context add",
  summary: "Add a context for a platform, with this --url and --token, and switch to it",
  arguments: [NAME],
  examples: ["hangar context add here --url $(cat $HANGAR_DATA_DIR/address) --token $TOKEN"],
  async run({ client, token, say }, input) {
    const name = firstArgument(input);
    if (!/^[\w.-]{1,64}$/.test(name))
      throw new UsageError(`${name} is not a name: up to 64 letters, digits, dots, dashes and underscores`);
    const { contexts } = readPlaces(process.env);
    contexts[name] = { url: client.base_url, token: token() };
    writePlaces(process.env, { current: name, contexts });
    const known = await client.call("GET /v1/tokens/current", {}).catch((thrown: unknown) => {
      say(`warning: it does not accept this token yet: ${messageOf(thrown)}`);
    });
    const who = known?.tokens[0]?.rights.join(", ");
    return { data: { name, url: client.base_url }, text: `${name} is ${client.base_url}${who ? ` (${who})` : ""}` };
  },
};

const contextUse: Verb = {
  words: "context use",
  summary: "Switch to a platform; - is the platform of the data dir",
  arguments: [["<name>", "a name of `hangar context list`, or -"]],
  examples: ["hangar context use here", "hangar context use -"],
  async run(_context, input) {
    const name = firstArgument(input);
    const places = readPlaces(process.env);
    if (name === "-") {
      writePlaces(process.env, { contexts: places.contexts });
      return { data: { current: null }, text: "the platform of the data dir" };
    }
    const { url } = placeNamed(places, name);
    writePlaces(process.env, { ...places, current: name });
    return { data: { current: name, url }, text: `${name} is ${url}` };
  },
};

const contextList: Verb = {
  words: "context list",
  summary: "List contexts",
  examples: ["hangar context list"],
  async run() {
    const { current, contexts } = readPlaces(process.env);
    const data = Object.entries(contexts).map(([name, { url }]) => ({ name, url, current: name === current }));
    if (data.length === 0) return { data, text: "no contexts; `hangar context add NAME --url … --token …` makes one" };
    const rows = data.map(({ name, url, current: now }) => [name, url, now ? "current" : ""]);
    return { data, text: table(["name", "url", ""], rows) };
  },
};

const contextShow: Verb = {
  words: "context show",
  summary: "Show the current platform, and the reason for the choice",
  examples: ["hangar context show"],
  async run({ client, chosen }) {
    const data = { url: client.base_url, because: chosen, file: contextsFile(process.env) };
    return { data, text: facts(Object.entries(data)) };
  },
};

const contextRemove: Verb = {
  words: "context remove",
  summary: "Remove a context; the platform itself is not touched",
  arguments: [NAME],
  examples: ["hangar context remove here"],
  async run(_context, input) {
    const name = firstArgument(input);
    const { current, contexts } = readPlaces(process.env);
    placeNamed({ contexts }, name);
    delete contexts[name];
    writePlaces(process.env, { ...(current === name ? {} : { current }), contexts });
    return { data: { removed: name }, text: `forgot ${name}` };
  },
};

export const VERBS: readonly Verb[] = [contextAdd, contextList, contextUse, contextShow, contextRemove];
