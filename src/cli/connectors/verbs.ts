import { count } from "#core/words.ts";
import { listTable, pagesOf } from "../lists.ts";
import { table } from "../output.ts";
import { firstArgument, type Input, listOption, numberOption, textOption, UsageError, type Verb } from "../verb.ts";
import { connectionText, ORG, orgOf, POLICY, policyOf, policyWords, shown } from "./create.ts";

const ID: readonly [string, string] = ["<id>", "the connector's id"];

export const connectorsList: Verb = {
  words: "connectors list",
  summary: "List an organization's connectors and their policies",
  options: [ORG, ["--provider <provider>", "only of this provider"]],
  lists: true,
  examples: ["hangar connectors list"],
  async run(context, input) {
    const provider = textOption(input, "provider");
    const query = { ...orgOf(input), ...(provider === undefined ? {} : { provider }) };
    return await listTable(context, input, pagesOf(context.client, input, "GET /v1/oauth/connections", { query }), {
      heads: ["id", "provider", "account", "who may use it"],
      row: (one) => [one.id, one.provider, one.provider_account_name, policyWords(one.access_policy)],
    });
  },
};

export const connectorsProviders: Verb = {
  words: "connectors providers",
  summary: "List the providers and how each can be connected here",
  examples: ["hangar connectors providers"],
  async run({ client }) {
    const { providers } = await client.call("GET /v1/oauth/providers", {});
    const rows = providers.map((one) => [one.provider, one.title, one.category, one.connected_by.join(", ")]);
    return { data: providers, text: table(["provider", "", "kind", "connected by"], rows) };
  },
};

export const connectorsShow: Verb = {
  words: "connectors show",
  summary: "Show a connector and its usage",
  arguments: [ID],
  examples: ["hangar connectors show $CONNECTOR"],
  async run({ client }, input) {
    const params = { connection_id: firstArgument(input) };
    const { connection } = await client.call("GET /v1/oauth/connections/:connection_id", { params });
    const usage = await client.call("GET /v1/oauth/connections/:connection_id/usage", { params });
    const used = `${count(usage.calls, "call")}, ${usage.denials} denied, ${usage.failures} failed; last ${usage.last_used_at ?? "never"}`;
    return { data: { ...connection, usage }, text: `${connectionText(connection)}\nused          ${used}` };
  },
};

export const connectorsPolicy: Verb = {
  words: "connectors policy",
  summary: "Replace a connector's access policy; without options no machine may use it",
  arguments: [ID],
  options: POLICY,
  examples: ["hangar connectors policy $CONNECTOR --name-prefix web- --label prod --block '/admin*'"],
  async run(context, input) {
    const made = await context.client.call("PUT /v1/oauth/connections/:connection_id", {
      params: { connection_id: firstArgument(input) },
      body: { access_policy: policyOf(input) },
    });
    return shown(context, made);
  },
};

/** The labels given on the command line, instead of those of the machine. */
const hasOf = (input: Input): { labels?: string[] } => {
  const labels = listOption(input, "has");
  return labels.length > 0 ? { labels: [...labels] } : {};
};

export const connectorsExplain: Verb = {
  words: "connectors explain",
  summary: "Explain which policy rule decides about a machine and a path",
  arguments: [ID],
  options: [
    ["--sprite <name>", "the machine's name (required)"],
    ["--has <label...>", "labels of the machine (default: those of the machine with this name)"],
    ["--path <path>", "the provider's path (required)"],
    ...POLICY,
  ],
  examples: [
    "hangar connectors explain $CONNECTOR --sprite web-1 --has prod --path /user",
    "hangar connectors explain $CONNECTOR --sprite web-1 --path /user --allow-all --block '/user*'",
  ],
  async run({ client }, input) {
    const [sprite, path] = [textOption(input, "sprite"), textOption(input, "path")];
    if (sprite === undefined || path === undefined)
      throw new UsageError("name the machine and the path: --sprite web-1 --path /user");
    const access_policy = policyOf(input);
    const data = await client.call("POST /v1/oauth/connections/:connection_id/explain", {
      params: { connection_id: firstArgument(input) },
      body: {
        sprite,
        path,
        ...hasOf(input),
        ...(Object.keys(access_policy).length > 0 ? { access_policy } : {}),
      },
    });
    return { data, text: `${data.allowed ? "allowed" : "denied"} by ${data.rule}\n${data.reason}` };
  },
};

export const connectorsTest: Verb = {
  words: "connectors test",
  summary: "Test a connector: call the provider with its credential",
  arguments: [ID],
  options: [
    ["--sprite <name>", "as if this machine called"],
    ["--has <label...>", "labels of the machine (default: those of the machine with this name)"],
    ["--path <path>", "base path, if not the provider's default"],
  ],
  examples: ["hangar connectors test $CONNECTOR --sprite db-1"],
  async run({ client }, input) {
    const [sprite, path] = [textOption(input, "sprite"), textOption(input, "path")];
    const data = await client.call("POST /v1/oauth/connections/:connection_id/test_gateway", {
      params: { connection_id: firstArgument(input) },
      body: {
        ...hasOf(input),
        ...(sprite === undefined ? {} : { sprite }),
        ...(path === undefined ? {} : { path }),
      },
    });
    const text = `${data.status}: ${data.message} (${data.latency_ms} ms)`;
    return { data, text, exit: data.status === "ok" ? 0 : 1 };
  },
};

export const connectorsRotate: Verb = {
  words: "connectors rotate",
  summary: "Replace a connector's key; the new one is read from stdin",
  arguments: [ID],
  examples: ["echo $KEY | hangar connectors rotate $CONNECTOR"],
  async run(context, input) {
    const api_key = (await context.stdin()).trim();
    const params = { connection_id: firstArgument(input) };
    const made = await context.client.call("PUT /v1/oauth/connections/:connection_id/api_key", {
      params,
      body: { api_key },
    });
    return { ...shown(context, made), text: "rotated; the next call uses the new key" };
  },
};

export const connectorsAudit: Verb = {
  words: "connectors audit",
  summary: "Show the audit log of connectors, newest first",
  options: [
    ORG,
    ["--connector <id>", "only of this one"],
    ["--action <action>", "created, policy, rotated, refreshed, deleted, call or denied"],
    ["--limit <n>", "how many (default: 50)"],
  ],
  examples: ["hangar connectors audit --action denied"],
  async run({ client }, input) {
    const [connection_id, action] = [textOption(input, "connector"), textOption(input, "action")];
    const query = {
      limit: numberOption(input, "limit") ?? 50,
      ...orgOf(input),
      ...(connection_id === undefined ? {} : { connection_id }),
      ...(action === undefined ? {} : { action }),
    };
    const { entries } = await client.call("GET /v1/oauth/audit", { query });
    const rows = entries.map((entry) => [
      entry.at,
      entry.action,
      entry.actor,
      entry.connection_id,
      [entry.method, entry.path, entry.status].filter((part) => part !== undefined).join(" "),
      entry.rule ?? "",
    ]);
    return { data: entries, text: table(["at", "what", "who", "connector", "request", "rule"], rows) };
  },
};

export const connectorsDelete: Verb = {
  words: "connectors delete",
  summary: "Delete a connector and its credential",
  arguments: [ID],
  examples: ["hangar connectors delete $CONNECTOR"],
  async run({ client }, input) {
    const id = firstArgument(input);
    await client.call("DELETE /v1/oauth/connections/:connection_id", { params: { connection_id: id } });
    return { data: { deleted: id }, text: `deleted ${id}` };
  },
};
