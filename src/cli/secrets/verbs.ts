import { count } from "#core/words.ts";
import { listTable, pagesOf } from "../lists.ts";
import { type Context, type Input, neededApp, UsageError, type Verb } from "../verb.ts";

const APP: readonly [string, string] = ["-a, --app <app>", "the app"];

const secretsList: Verb = {
  words: "secrets list",
  summary: "List an app's secrets: names and digests, never values",
  options: [APP],
  lists: true,
  examples: ["hangar secrets list --app web"],
  async run(context, input) {
    const params = { app_name: neededApp(input) };
    return await listTable(
      context,
      input,
      pagesOf(context.client, input, "GET /v1/apps/:app_name/secrets", { params }),
      {
        heads: ["name", "digest", "updated"],
        row: ({ name, digest, updated_at }) => [name, digest, updated_at],
      },
    );
  },
};

const secretsSet: Verb = {
  words: "secrets set",
  summary: "Set secrets; NAME=- reads the value from stdin, which keeps it out of the shell history",
  arguments: [["<pairs...>", "NAME=VALUE, several at once"]],
  options: [APP],
  examples: ["hangar secrets set --app web API_KEY=12345 MODE=test"],
  async run(context, input) {
    const values = Object.fromEntries(await Promise.all(input.rest.map((pair) => readPair(context, pair))));
    return await change(context, input, values, "set");
  },
};

const secretsUnset: Verb = {
  words: "secrets unset",
  summary: "Remove secrets",
  arguments: [["<names...>", "names, several at once"]],
  options: [APP],
  examples: ["hangar secrets unset --app web MODE"],
  run: async (context, input) =>
    await change(context, input, Object.fromEntries(input.rest.map((name) => [name, null])), "removed"),
};

async function readPair(context: Context, pair: string): Promise<[string, string]> {
  const at = pair.indexOf("=");
  if (at < 1) throw new UsageError(`${pair} is not NAME=VALUE`);
  const value = pair.slice(at + 1);
  return [pair.slice(0, at), value === "-" ? (await context.stdin()).replace(/\n$/, "") : value];
}

async function change({ client }: Context, input: Input, values: Record<string, string | null>, verb: string) {
  const data = await client.call("POST /v1/apps/:app_name/secrets", {
    params: { app_name: neededApp(input) },
    body: { values },
  });
  return {
    data,
    text: `${verb} ${count(Object.keys(values).length, "secret")} (version ${data.version}); machines get them at their next start`,
  };
}

export const VERBS: readonly Verb[] = [secretsList, secretsSet, secretsUnset];
