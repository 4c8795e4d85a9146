import { count } from "#core/words.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ORG } from "../metrics/ask.ts";
import { table } from "../output.ts";
import { firstArgument, textOption, UsageError, type Verb } from "../verb.ts";
import { orgOf } from "./list.ts";
import { contentOf } from "./rules.ts";

export const alertsReceivers: Verb = {
  words: "alerts receivers",
  summary: "Show or set receivers and routes: webhook, Slack, e-mail, ntfy, Alertmanager",
  details: () =>
    "The file has the format of Alertmanager's: `route` and `receivers` with webhook_configs, slack_configs, email_configs, ntfy_configs; `alertmanagers` with the url of each.",
  arguments: [["[file]", "YAML to set; - reads stdin (default: show them)"]],
  options: [ORG, ["--delete", "delete them: no notifications are sent any more"]],
  examples: ["hangar alerts receivers receivers.yml", "hangar alerts receivers"],
  async run({ client, stdin }, input) {
    const params = orgOf(input);
    const path = firstArgument(input);
    if (input.options["delete"] === true) {
      await client.call("DELETE /v1/orgs/:org_slug/alerts/receivers", { params });
      return { data: { deleted: true }, text: "deleted receivers and routes" };
    }
    if (path === "") {
      const config = await client.call("GET /v1/orgs/:org_slug/alerts/receivers", { params });
      return { data: config, text: config.content.trimEnd() };
    }
    const body = { content: await contentOf(path, stdin) };
    const config = await client.call("PUT /v1/orgs/:org_slug/alerts/receivers", { params, body });
    const lines = config.receivers.map(
      ({ name, integrations }) => `${name}: ${integrations.join("; ") || "no integrations"}`,
    );
    return { data: config, text: [...lines, "Next: hangar alerts try <receiver>"].join("\n") };
  },
};

export const alertsTry: Verb = {
  words: "alerts try",
  summary: "Send a test alert to a receiver now",
  arguments: [["<receiver>", "its name"]],
  options: [ORG],
  examples: ["hangar alerts try operator"],
  async run({ client }, input) {
    const params = { ...orgOf(input), receiver: firstArgument(input) };
    const { results } = await client.call("POST /v1/orgs/:org_slug/alerts/receivers/:receiver/test", { params });
    const lines = results.map(({ integration, problem }) => `${integration}: ${problem ?? "delivered"}`);
    const failed = results.some(({ problem }) => problem !== null);
    return { data: { results }, text: lines.join("\n") || "the receiver has no integrations", exit: failed ? 1 : 0 };
  },
};

export const alertsNotifications: Verb = {
  words: "alerts notifications",
  summary: "List notifications and their delivery, newest first",
  options: [ORG],
  examples: ["hangar alerts notifications"],
  async run({ client }, input) {
    const params = orgOf(input);
    const { notifications } = await client.call("GET /v1/orgs/:org_slug/alerts/notifications", { params, query: {} });
    const rows = notifications.map(({ created_at, receiver, integration, state, attempts, last_error }) => [
      created_at,
      receiver,
      integration,
      state,
      state === "delivered" ? count(attempts, "attempt") : (last_error ?? ""),
    ]);
    const heads = ["created", "receiver", "to", "state", "details"];
    return { data: { notifications }, text: rows.length === 0 ? "no notifications yet" : table(heads, rows) };
  },
};

export const alertsSilences: Verb = {
  words: "alerts silences",
  summary: "List silences",
  options: [ORG],
  lists: true,
  examples: ["hangar alerts silences"],
  async run(context, input) {
    const pages = pagesOf(context.client, input, "GET /v1/orgs/:org_slug/alerts/silences", { params: orgOf(input) });
    return await listTable(context, input, pages, {
      heads: ["id", "alerts", "until", "by", "comment"],
      row: ({ id, matchers, ends_at, created_by, comment }) => [id, matchers.join(" "), ends_at, created_by, comment],
      none: "no silences",
    });
  },
};

export const alertsSilence: Verb = {
  words: "alerts silence",
  summary: "Silence matching alerts: no notifications are sent; --end ends a silence",
  arguments: [["[matchers...]", `such as alertname=ManyErrors app=web 'host=~"a|b"'`]],
  options: [
    ORG,
    ["--for <time>", "how long, such as 30m or 2h (default: 2h)"],
    ["--comment <text>", "why"],
    ["--end <id>", "end this silence now"],
  ],
  examples: ["hangar alerts silence app=web --for 30m --comment deploy"],
  async run({ client }, input) {
    const ended = textOption(input, "end");
    if (ended !== undefined) {
      const params = { ...orgOf(input), silence_id: ended };
      await client.call("DELETE /v1/orgs/:org_slug/alerts/silences/:silence_id", { params });
      return { data: { id: ended, ended: true }, text: `ended silence ${ended}` };
    }
    const matchers = input.rest.length > 0 ? [...input.rest] : input.args.flatMap((one) => one ?? []);
    if (matchers.length === 0)
      throw new UsageError("name what to silence, such as app=web; `hangar alerts` shows labels");
    const comment = textOption(input, "comment");
    const body = { matchers, duration: textOption(input, "for") ?? "2h", ...(comment ? { comment } : {}) };
    const made = await client.call("POST /v1/orgs/:org_slug/alerts/silences", { params: orgOf(input), body });
    return { data: made, text: `silenced ${made.matchers.join(" ")} until ${made.ends_at} (${made.id})` };
  },
};
