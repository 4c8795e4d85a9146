import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { a, div, h, section } from "../html.ts";
import { BandWords, firedIn } from "../parts/alert-bands.ts";
import { useAnswer, when } from "../parts/basics.ts";
import { Chart } from "../parts/chart.ts";
import { choices, SPANS, useRounds } from "../parts/controls.ts";
import { bytes, figure } from "../parts/format.ts";
import { lastSeconds, queryRange, type Range, type Series } from "../prometheus.ts";
import { to } from "../router.ts";
import { type AppTabProps, machineNames, useMachines } from "./app-tab.ts";

interface Panel {
  title: string;
  /** `app` is the label's value in quotes, `rate` the window. */
  query: (app: string, rate: string) => string;
  format: (value: number) => string;
  /** The label that names a line. */
  by: "status" | "line" | "instance";
}

const percent = (value: number): string => `${figure(Math.round(value * 100) / 100)} %`;
const seconds = (value: number): string =>
  value < 1 ? `${figure(Math.round(value * 10_000) / 10)} ms` : `${figure(value)} s`;
const RESPONSES = "svc_edge_http_responses_count";

const latency = (app: string, rate: string): string =>
  ["0.5", "0.95", "0.99"]
    .map(
      (quantile) =>
        `label_set(histogram_quantile(${quantile}, sum by (le) (rate(svc_edge_http_response_time_seconds_bucket{app=${app}}[${rate}]))), "line", "p${quantile.slice(2).padEnd(2, "0")}")`,
    )
    .join(" or ");

const PANELS: readonly Panel[] = [
  {
    title: "Requests per second, by status",
    query: (app, rate) => `sum by (status) (rate(${RESPONSES}{app=${app}}[${rate}]))`,
    format: figure,
    by: "status",
  },
  { title: "Response time at the edge", query: latency, format: seconds, by: "line" },
  {
    title: "Error rate (5xx)",
    query: (app, rate) =>
      `label_set(100 * (sum(rate(${RESPONSES}{app=${app}, status=~"5.."}[${rate}])) or sum(rate(${RESPONSES}{app=${app}}[${rate}])) * 0) / sum(rate(${RESPONSES}{app=${app}}[${rate}])), "line", "5xx")`,
    format: percent,
    by: "line",
  },
  {
    title: "Running machines",
    query: (app) => `label_set(count(svc_instance_up{app=${app}}), "line", "running")`,
    format: figure,
    by: "line",
  },
  {
    title: "CPU, % of one",
    query: (app, rate) =>
      `sum by (instance) (rate(svc_instance_cpu{app=${app}, mode=~"user|system|iowait|steal"}[${rate}]))`,
    format: percent,
    by: "instance",
  },
  {
    title: "Memory used",
    query: (app) =>
      `max by (instance) (svc_instance_memory_mem_total{app=${app}} - svc_instance_memory_mem_available{app=${app}})`,
    format: bytes,
    by: "instance",
  },
];

const EVERY_MS = 15_000;

/** Four steps at least, so that each has samples, which are 15 seconds apart. */
const rateOf = ({ step }: Range): string => `${Math.max(60, 4 * step)}s`;

/** Traffic, latency, errors and usage of an app, over one time range. */
export function AppCharts({ app_name }: Pick<AppTabProps, "app_name">): VNode {
  const [span_s, setSpan] = useState<number>(900);
  const round = useRounds(EVERY_MS);
  const name = machineNames(useMachines(app_name));
  const answer = useAnswer(
    async (signal) => {
      const range = lastSeconds(span_s);
      const app = JSON.stringify(app_name);
      const [fired, ...found] = await Promise.all([
        firedIn(app_name, range, signal),
        ...PANELS.map(({ query }) => queryRange(query(app, rateOf(range)), range, signal)),
      ]);
      return { range, found, fired };
    },
    [app_name, span_s, round],
  );
  const nameOf =
    ({ by }: Panel) =>
    ({ labels }: Series): string =>
      by === "instance" ? name(labels["instance"] ?? "") : (labels[by] ?? "");
  return section(
    { "aria-label": "Charts" },
    choices<number>(
      { class: "filters", label: "Time range" },
      SPANS,
      span_s,
      setSpan,
      a(
        { href: `${to("metrics")}?query=${encodeURIComponent(`{app=${JSON.stringify(app_name)}}`)}` },
        "Open in Metrics",
      ),
    ),
    answer.value === undefined && answer.error === undefined
      ? div(
          { class: "charts", "aria-busy": true },
          ...PANELS.map(({ title }) => div({ class: "chart skeleton", key: title })),
        )
      : when(answer, ({ range, found, fired }) =>
          div(
            h(BandWords, { fired }),
            div(
              { class: "charts" },
              ...PANELS.map((panel, index) =>
                h(Chart, {
                  key: panel.title,
                  title: panel.title,
                  series: found[index] ?? [],
                  range,
                  format: panel.format,
                  nameOf: nameOf(panel),
                  bands: fired,
                }),
              ),
            ),
          ),
        ),
  );
}
