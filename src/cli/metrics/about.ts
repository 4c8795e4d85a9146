/** Metrics about metrics: scrape targets and cardinality. */
import { table } from "../output.ts";
import { numberOption, type Verb } from "../verb.ts";
import { askMetrics, ORG } from "./ask.ts";

interface Target {
  labels: Record<string, string>;
  scrapeUrl: string;
  health: string;
  lastError: string;
  lastSamples: number;
}

export const metricsTargets: Verb = {
  words: "metrics targets",
  summary: "List scrape targets and their health",
  options: [ORG],
  examples: ["hangar metrics targets"],
  async run(context, input) {
    const route = "GET /prometheus/:org_slug/api/v1/targets";
    const { data } = await askMetrics<{ data: { activeTargets: Target[] } }>(context, input, route, { query: {} });
    const rows = data.activeTargets.map(({ labels, scrapeUrl, health, lastError, lastSamples }) => [
      labels["app"] ?? "",
      scrapeUrl,
      health,
      String(lastSamples),
      lastError,
    ]);
    const text = table(["app", "address", "health", "samples", "problem"], rows);
    return { data: data.activeTargets, text: rows.length === 0 ? "no machine exposes metrics" : text };
  },
};

interface Count {
  name: string;
  value: number;
}

export const metricsCardinality: Verb = {
  words: "metrics cardinality",
  summary: "Show the metrics and labels with most series",
  options: [ORG, ["--top <n>", "how many of each (default: 10)"]],
  examples: ["hangar metrics cardinality"],
  async run(context, input) {
    const route = "GET /prometheus/:org_slug/api/v1/status/tsdb";
    const query = { topN: numberOption(input, "top") ?? 10 };
    type Cardinality = { seriesCountByMetricName: Count[]; labelValueCountByLabelName: Count[] };
    const { data } = await askMetrics<{ data: Cardinality }>(context, input, route, { query });
    const listed = (head: [string, string], counts: readonly Count[]): string =>
      table(
        head,
        counts.map(({ name, value }) => [name, String(value)]),
      );
    const { seriesCountByMetricName: metrics, labelValueCountByLabelName: labels } = data;
    return { data, text: `${listed(["metric", "series"], metrics)}\n\n${listed(["label", "values"], labels)}` };
  },
};
