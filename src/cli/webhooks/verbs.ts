import { count } from "#core/words.ts";
import { listTable, pagesOf } from "../lists.ts";
import { firstArgument, type Input, textOption, type Verb } from "../verb.ts";

const ORG: readonly [string, string] = ["--org <slug>", "the organization (default: personal)"];

const orgOf = (input: Input): { org_slug: string } => ({ org_slug: textOption(input, "org") ?? "personal" });

const webhooksCreate: Verb = {
  words: "webhooks create",
  summary: "Create a webhook: machine events are sent signed, and retried until they arrive",
  arguments: [["<url>", "where to send them"]],
  options: [ORG, ["-a, --app <app>", "only this app's events"]],
  examples: ["hangar webhooks create http://127.0.0.1:9/hangar"],
  async run({ client, say }, input) {
    const body = { url: firstArgument(input), app_name: textOption(input, "app") };
    const made = await client.call("POST /v1/orgs/:org_slug/webhooks", { params: orgOf(input), body });
    say("the signing secret is shown only now");
    return { data: made, text: `${made.id}  ${made.secret}` };
  },
};

const webhooksList: Verb = {
  words: "webhooks list",
  summary: "List webhooks and their delivery state",
  options: [ORG],
  lists: true,
  examples: ["hangar webhooks list"],
  async run(context, input) {
    const pages = pagesOf(context.client, input, "GET /v1/orgs/:org_slug/webhooks", { params: orgOf(input) });
    return await listTable(context, input, pages, {
      heads: ["id", "app", "url", "arrives"],
      row: ({ id, url, app_name, failures, last_error }) => [
        id,
        app_name ?? "all",
        url,
        failures === 0 ? "ok" : `${count(failures, "failure")}: ${last_error ?? "?"}`,
      ],
      none: "no webhooks",
    });
  },
};

const webhooksDelete: Verb = {
  words: "webhooks delete",
  summary: "Delete a webhook",
  arguments: [["<webhook>", "its id"]],
  options: [ORG],
  examples: ["hangar webhooks delete $WEBHOOK"],
  async run({ client }, input) {
    const webhook_id = firstArgument(input);
    const params = { ...orgOf(input), webhook_id };
    await client.call("DELETE /v1/orgs/:org_slug/webhooks/:webhook_id", { params });
    return { data: { id: webhook_id, deleted: true }, text: `deleted webhook ${webhook_id}` };
  },
};

export const VERBS: readonly Verb[] = [webhooksCreate, webhooksList, webhooksDelete];
