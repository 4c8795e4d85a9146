/** Commands that create connectors. Keys are read from stdin, so that they are not in the shell history. */
import type { AccessPolicy, Connection } from "#client/api.ts";
import { facts } from "../output.ts";
import {
  type Context,
  firstArgument,
  type Input,
  listOption,
  type Result,
  textOption,
  UsageError,
  type Verb,
} from "../verb.ts";

export const ORG: readonly [string, string] = ["--org <slug>", "the organization (default: personal)"];

/** Policy options, shared by all commands with a policy. */
export const POLICY: readonly (readonly [string, string])[] = [
  ["--allow-all", "every machine of the organization may use it"],
  ["--name-prefix <prefix>", "machines whose names begin with this"],
  ["--label <label...>", "machines that have all of these labels"],
  ["--allow <path...>", "only these paths of the provider; a trailing * matches any suffix"],
  ["--block <path...>", "block these paths; checked first"],
];

export function policyOf(input: Input): AccessPolicy {
  const prefix = textOption(input, "namePrefix");
  const lists = { sprite_labels: "label", allowed_endpoints: "allow", blocked_endpoints: "block" } as const;
  const given = Object.entries(lists).flatMap(([field, option]) => {
    const values = listOption(input, option);
    return values.length > 0 ? [[field, [...values]]] : [];
  });
  return {
    ...(input.options["allowAll"] ? { allow_all: true } : {}),
    ...(prefix === undefined ? {} : { name_prefix: prefix }),
    ...(Object.fromEntries(given) as AccessPolicy),
  };
}

export const orgOf = (input: Input): { org_slug?: string } => {
  const org_slug = textOption(input, "org");
  return org_slug === undefined ? {} : { org_slug };
};

async function keyOf(context: Context): Promise<string> {
  const key = (await context.stdin()).trim();
  if (key === "") throw new UsageError('the key is read from stdin: echo "$KEY" | hangar connectors create …');
  return key;
}

export const connectorsCreate: Verb = {
  words: "connectors create",
  summary: "Connect a provider with a key, which is read from stdin",
  arguments: [["<provider>", "for example github; `hangar connectors providers` lists them"]],
  options: [
    ORG,
    ["--base-url <address>", "base URL, for self-hosted providers"],
    ["--region <name>", "of an object store"],
    ...POLICY,
  ],
  examples: ["echo $KEY | hangar connectors create github --name-prefix web- --allow /user '/repos/*'"],
  async run(context, input) {
    const base_url = textOption(input, "baseUrl");
    const region = textOption(input, "region");
    const made = await context.client.call("POST /v1/oauth/connections/api_key", {
      body: {
        provider: firstArgument(input),
        api_key: await keyOf(context),
        access_policy: policyOf(input),
        ...orgOf(input),
        ...(base_url === undefined ? {} : { base_url }),
        ...(region === undefined ? {} : { region }),
      },
    });
    return shown(context, made);
  },
};

export const connectorsCustom: Verb = {
  words: "connectors custom",
  summary: "Connect any HTTP API with a token, which is read from stdin",
  arguments: [
    ["<name>", "name of the connector"],
    ["<address>", "base URL; {token} in it is replaced by the token"],
  ],
  options: [
    ORG,
    ["--auth <where>", "where the token goes: header (default), query or path"],
    ["--prefix <text>", "before the token in the header (default: Bearer)"],
    ["--header <name>", "the header (default: Authorization)"],
    ["--query-name <name>", "the parameter (default: access_token)"],
    ["--test-path <path>", "path of the test request (default: /)"],
    ...POLICY,
  ],
  examples: ["echo $KEY | hangar connectors custom weather https://api.weather.example/v1 --auth query --allow-all"],
  async run(context, input) {
    const auth_method = textOption(input, "auth") ?? "header";
    if (auth_method !== "header" && auth_method !== "query" && auth_method !== "path")
      throw new UsageError(`--auth is header, query or path, not ${auth_method}`);
    const texts = {
      prefix: "auth_header_prefix",
      header: "auth_header_name",
      queryName: "auth_query_name",
      testPath: "test_url",
    };
    const given = Object.entries(texts).flatMap(([option, field]) => {
      const value = textOption(input, option);
      return value === undefined ? [] : [[field, value]];
    });
    const made = await context.client.call("POST /v1/oauth/connections/custom_api", {
      body: {
        name: firstArgument(input),
        base_api_url: input.args[1] ?? "",
        access_token: await keyOf(context),
        auth_method,
        access_policy: policyOf(input),
        ...orgOf(input),
        ...(Object.fromEntries(given) as object),
      },
    });
    return shown(context, made);
  },
};

export const connectorsProvision: Verb = {
  words: "connectors provision",
  summary: "Connect a provider with the operator's key, or the platform itself (sprites_admin)",
  arguments: [["<provider>", "sprites_admin, or a provider whose key the operator has configured"]],
  options: [ORG, ...POLICY],
  examples: ["hangar connectors provision sprites_admin --label admin --allow '/v1/apps/web/*'"],
  async run(context, input) {
    const body = { provider: firstArgument(input), access_policy: policyOf(input), ...orgOf(input) };
    return shown(context, await context.client.call("POST /v1/oauth/connections/provision", { body }));
  },
};

export const connectorsConnect: Verb = {
  words: "connectors connect",
  summary: "Connect a provider with OAuth: prints the URL to open",
  arguments: [["<provider>", "github, gitlab or slack, if the operator registered the platform there"]],
  options: [ORG, ["--scopes <list>", "comma-separated (default: the provider's defaults)"]],
  examples: ["hangar connectors connect github"],
  async run({ client, say }, input) {
    const scopes = textOption(input, "scopes");
    const query = { ...orgOf(input), ...(scopes === undefined ? {} : { scopes }) };
    const data = await client.call("GET /v1/oauth/:provider/authorize", {
      params: { provider: firstArgument(input) },
      query,
    });
    say("Open this URL and approve; the page you return to shows how to finish:");
    return { data, text: data.authorize_url };
  },
};

export const connectorsFinish: Verb = {
  words: "connectors finish",
  summary: "Complete an OAuth connection with the code of the provider",
  arguments: [["<provider>", "the state of the authorization"]],
  options: [ORG, ["--code <code>", "from the page"], ["--state <state>", "from the page"], ...POLICY],
  examples: ["hangar connectors finish github --code $CODE --state $STATE --allow-all"],
  async run(context, input) {
    const code = textOption(input, "code") ?? "";
    const state = textOption(input, "state") ?? "";
    const made = await context.client.call("POST /v1/oauth/:provider/callback", {
      params: { provider: firstArgument(input) },
      body: { code, state, access_policy: policyOf(input), ...orgOf(input) },
    });
    return shown(context, made);
  },
};

/** A created or changed connector, with warnings. */
export function shown({ say }: Context, made: { connection: Connection; warnings?: string[] | undefined }): Result {
  for (const warning of made.warnings ?? []) say(`note: ${warning}`);
  return { data: made.connection, text: connectionText(made.connection) };
}

export function connectionText(connection: Connection): string {
  return facts([
    ["id", connection.id],
    ["provider", connection.provider],
    ["account", `${connection.provider_account_name} (${connection.provider_account_id})`],
    ["made by", connection.connection_type],
    ...(connection.scopes === "" ? [] : [["scopes", connection.scopes] as const]),
    ...(connection.token_expires_at === undefined ? [] : [["token ends", connection.token_expires_at] as const]),
    ["policy", policyWords(connection.access_policy)],
    ["in a machine", connection.usage_snippet],
  ]);
}

export function policyWords(policy: AccessPolicy): string {
  const { allow_all, name_prefix, sprite_labels = [], allowed_endpoints = [], blocked_endpoints = [] } = policy;
  const who = [
    name_prefix ? `named ${name_prefix}*` : "",
    sprite_labels.length > 0 ? `labelled ${sprite_labels.join(" and ")}` : "",
  ];
  const sprites = who.filter(Boolean).join(", ");
  const parts = [
    allow_all ? "all machines" : sprites === "" ? "no machine" : `machines ${sprites}`,
    allowed_endpoints.length > 0 ? `only ${allowed_endpoints.join(" ")}` : "",
    blocked_endpoints.length > 0 ? `not ${blocked_endpoints.join(" ")}` : "",
  ];
  return parts.filter(Boolean).join("; ");
}
