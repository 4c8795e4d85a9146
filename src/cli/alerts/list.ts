import { listTable, pagesOf } from "../lists.ts";
import { ORG } from "../metrics/ask.ts";
import { type Input, textOption, type Verb } from "../verb.ts";

export const orgOf = (input: Input): { org_slug: string } => ({ org_slug: textOption(input, "org") ?? "personal" });

/** Labels beside the name, as written in a query. */
const labelsText = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .filter(([name]) => name !== "alertname")
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(" ");

export const alertsList: Verb = {
  words: "alerts list",
  summary: "List alerts that are pending or firing, and what to do about them",
  options: [
    ORG,
    ["-a, --app <app>", "only this app's alerts"],
    ["--resolved", "also alerts resolved in the last 15 minutes"],
  ],
  lists: true,
  is_default: true,
  examples: ["hangar alerts list"],
  async run(context, input) {
    const app_name = textOption(input, "app");
    const query = {
      ...(app_name ? { app_name } : {}),
      ...(input.options["resolved"] === true ? { resolved: true } : {}),
    };
    const pages = pagesOf(context.client, input, "GET /v1/orgs/:org_slug/alerts", { params: orgOf(input), query });
    return await listTable(context, input, pages, {
      heads: ["state", "alert", "since", "labels", "summary", "what to do"],
      row: ({ state, labels, annotations, active_at }) => [
        state,
        labels["alertname"] ?? "",
        active_at,
        labelsText(labels),
        annotations["summary"] ?? "",
        annotations["description"] ?? "",
      ],
      none: "no alerts",
    });
  },
};
