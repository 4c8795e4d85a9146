import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { a, button, code, div, form, h, p, span, table, tbody, td, th, thead, tr } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import { block, card, empty, pageHead, useAnswer, when } from "../parts/basics.ts";
import { Chart } from "../parts/chart.ts";
import { choices, SPANS } from "../parts/controls.ts";
import { figure } from "../parts/format.ts";
import {
  cardinality,
  labelNames,
  labelValues,
  lastSeconds,
  queryNow,
  queryRange,
  type Series,
  seriesName,
} from "../prometheus.ts";
import { remember } from "../router.ts";
import { org } from "../session.ts";
import { QueryBox } from "./query-box.ts";

const FURTHER: readonly (readonly [string, number])[] = [...SPANS, ["7 d", 604_800]];
const ROWS = 200;

/** A query with its chart and current values; and the available metrics. */
export function Page({ query }: PageProps): VNode {
  const [typed, setTyped] = useState(query.get("query") ?? "");
  const [asked, setAsked] = useState(typed);
  const [seconds, setSeconds] = useState(3600);
  const [round, setRound] = useState(0);
  const names = useAnswer((signal) => labelValues("__name__", signal), []);
  const labels = useAnswer((signal) => labelNames(signal), []);
  const run = (text = typed): void => {
    setTyped(text);
    setAsked(text);
    setRound((n) => n + 1);
    remember({ query: text });
  };
  return div(
    pageHead("Metrics"),
    form(
      {
        class: "ask",
        onSubmit: (event) => {
          event.preventDefault();
          run();
        },
      },
      h(QueryBox, {
        value: typed,
        onChange: setTyped,
        onRun: run,
        names: names.value ?? [],
        labels: labels.value ?? [],
      }),
      button({ type: "submit", class: "primary" }, "Run"),
    ),
    choices(
      { class: "filters", label: "Time range" },
      FURTHER,
      seconds,
      setSeconds,
      span({ class: "dim" }, "MetricsQL; PromQL is understood too"),
    ),
    asked.trim() === "" ? h(Start, { names: names.value ?? [], run }) : h(Result, { query: asked, seconds, round }),
    h(Cardinality, { run }),
  );
}

function Start({ names, run }: { names: readonly string[]; run: (query: string) => void }): VNode {
  if (names.length === 0) {
    return empty(
      "No samples in the last day.",
      p(
        "Machines that run are measured by themselves. Series of your own come from a machine's ",
        code("metrics"),
        " config, and Grafana finds all of them at:",
      ),
      block(`${location.origin}/prometheus/${org()}/`),
    );
  }
  return card(
    "Available metrics",
    p(
      { class: "chips" },
      ...names
        .slice(0, 60)
        .map((name) => button({ type: "button", key: name, class: "chip", onClick: () => run(name) }, name)),
    ),
    names.length > 60 ? p({ class: "dim" }, `and ${names.length - 60} more: type to find them`) : null,
  );
}

function Result({ query, seconds, round }: { query: string; seconds: number; round: number }): VNode {
  const answer = useAnswer(
    async (signal) => {
      const range = lastSeconds(seconds);
      const [over, now] = await Promise.all([queryRange(query, range, signal), queryNow(query, signal)]);
      return { range, over, now };
    },
    [query, seconds, round],
  );
  return div(
    { class: "result" },
    when(answer, ({ range, over, now }) =>
      div(h(Chart, { title: query, series: over, range, height: 300 }), h(Values, { series: now })),
    ),
  );
}

function Values({ series }: { series: readonly Series[] }): VNode | null {
  if (series.length === 0) return null;
  return div(
    { class: "table-wrap", tabIndex: 0 },
    table(
      { class: "plain" },
      thead(tr(th({ scope: "col" }, "series"), th({ scope: "col", class: "number" }, "now"))),
      tbody(
        ...series
          .slice(0, ROWS)
          .map(({ labels, points }, index) =>
            tr(
              { key: index },
              td(code(seriesName(labels))),
              td({ class: "number" }, figure(points[0]?.[1] ?? Number.NaN)),
            ),
          ),
      ),
    ),
    series.length > ROWS ? p({ class: "dim" }, `and ${series.length - ROWS} more`) : null,
  );
}

/** Cardinality: series by name, values by label. */
function Cardinality({ run }: { run: (query: string) => void }): VNode {
  const answer = useAnswer((signal) => cardinality(signal), []);
  return card(
    "Cardinality",
    when(answer, (found) => {
      const total = found.totalSeries ?? found.headStats?.numSeries ?? 0;
      if (total === 0) return p({ class: "dim" }, "No series yet.");
      return div(
        p(`${figure(total)} series.`),
        div(
          { class: "columns" },
          counted("metric", "series", found.seriesCountByMetricName, (name) =>
            a({ href: "#", onClick: act(() => run(name)) }, code(name)),
          ),
          counted("label", "values", found.labelValueCountByLabelName, (name) => code(name)),
        ),
      );
    }),
  );
}

const act = (work: () => void) => (event: Event) => {
  event.preventDefault();
  work();
};

function counted(
  what: string,
  of: string,
  counts: readonly { name: string; value: number }[],
  show: (name: string) => VNode,
): VNode {
  return table(
    { class: "plain" },
    thead(tr(th({ scope: "col" }, what), th({ scope: "col", class: "number" }, of))),
    tbody(
      ...counts.map(({ name, value }) => tr({ key: name }, td(show(name)), td({ class: "number" }, figure(value)))),
    ),
  );
}
