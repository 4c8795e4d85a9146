import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { a, code, div, h, p, section } from "../html.ts";
import { BandWords, firedIn } from "../parts/alert-bands.ts";
import { empty, useAnswer, when } from "../parts/basics.ts";
import { Chart } from "../parts/chart.ts";
import { choices, SPANS, useRounds } from "../parts/controls.ts";
import { bytes, figure } from "../parts/format.ts";
import { lastSeconds, queryRange, type Series } from "../prometheus.ts";
import { to } from "../router.ts";
import { call } from "../session.ts";
import type { TabProps } from "./machine-tab.ts";

interface Panel {
  title: string;
  query: (instance: string) => string;
  format: (value: number) => string;
  nameOf: (series: Series) => string;
}

const percent = (value: number): string => `${figure(Math.round(value * 10) / 10)} %`;
const perSecond = (value: number): string => `${bytes(value)}/s`;
const label =
  (name: string) =>
  ({ labels }: Series): string =>
    labels[name] ?? "";

/** Built-in series of a machine. */
const PANELS: readonly Panel[] = [
  {
    title: "CPU, % of one",
    query: (i) => `sum by (mode) (rate(svc_instance_cpu{${i}, mode=~"user|system|iowait|steal"}[1m]))`,
    format: percent,
    nameOf: label("mode"),
  },
  {
    title: "Memory",
    query: (i) =>
      `label_set(max(svc_instance_memory_mem_total{${i}} - svc_instance_memory_mem_available{${i}}), "line", "used") or label_set(max(svc_instance_memory_mem_total{${i}}), "line", "all")`,
    format: bytes,
    nameOf: label("line"),
  },
  {
    title: "Network",
    query: (i) =>
      `label_set(sum(rate(svc_instance_net_recv_bytes{${i}, device="eth0"}[1m])), "line", "in") or label_set(sum(rate(svc_instance_net_sent_bytes{${i}, device="eth0"}[1m])), "line", "out")`,
    format: perSecond,
    nameOf: label("line"),
  },
  {
    title: "Disk",
    query: (i) =>
      `label_set(sum(rate(svc_instance_disk_sectors_read{${i}}[1m]) * 512), "line", "read") or label_set(sum(rate(svc_instance_disk_sectors_written{${i}}[1m]) * 512), "line", "written")`,
    format: perSecond,
    nameOf: label("line"),
  },
  {
    title: "Load",
    query: (i) => `max by (minutes) (svc_instance_load_average{${i}})`,
    format: figure,
    nameOf: ({ labels }) => `${labels["minutes"] ?? ""} min`,
  },
];

const EVERY_MS = 15_000;

const VERSIONS = 20;

/** Each version of a machine is its own instance; charts join the last ones. */
async function instanceOf(app_name: string, machine_id: string, signal: AbortSignal): Promise<string> {
  const versions = await call("GET /v1/apps/:app_name/machines/:machine_id/versions", {
    params: { app_name, machine_id },
    signal,
  });
  return `instance=~"${versions
    .slice(0, VERSIONS)
    .map(({ version }) => version)
    .join("|")}"`;
}

export function MetricsTab({ machine, app_name }: TabProps): VNode {
  const [seconds, setSeconds] = useState<number>(900);
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    async (signal) => {
      const range = lastSeconds(seconds);
      const instance = await instanceOf(app_name, machine.id, signal);
      const [fired, ...found] = await Promise.all([
        // Alerts of the whole app, and of this machine; not of the others.
        firedIn(app_name, range, signal, instance.replace('"', '"|')),
        ...PANELS.map((panel) => queryRange(panel.query(instance), range, signal)),
      ]);
      return { range, found, fired };
    },
    [machine.id, machine.instance_id, seconds, round],
  );
  return section(
    { "aria-label": "Metrics" },
    choices<number>(
      { class: "filters", label: "Time range" },
      SPANS,
      seconds,
      setSeconds,
      a(
        { href: `${to("metrics")}?query=${encodeURIComponent(`{instance="${machine.instance_id}"}`)}` },
        "Open in Metrics",
      ),
    ),
    when(answer, ({ range, found, fired }) =>
      found.every((series) => series.length === 0)
        ? empty(
            "No samples in this time range.",
            p("A machine that runs is measured every 15 seconds, as the series ", code("svc_instance_…"), "."),
          )
        : div(
            h(BandWords, { fired }),
            div(
              { class: "charts" },
              ...PANELS.map(({ title, format, nameOf }, index) =>
                h(Chart, { key: title, title, series: found[index] ?? [], range, format, nameOf, bands: fired }),
              ),
            ),
          ),
    ),
  );
}
