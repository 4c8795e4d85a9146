/** Metrics that exist, and what has most series. */
import type { VNode } from "preact";
import { a, button, code, div, h, p, table, tbody, td, th, thead, tr } from "../html.ts";
import { block, card, empty, useAnswer, when } from "../parts/basics.ts";
import { figure } from "../parts/format.ts";
import { cardinality, labelValues } from "../prometheus.ts";
import { org } from "../session.ts";

/** Metric names for queries. */
export function Start({ run }: { run: (query: string) => void }): VNode {
  const answer = useAnswer((signal) => labelValues("__name__", signal), []);
  return div(when(answer, (names) => h(Names, { names, run })));
}

function Names({ names, run }: { names: readonly string[]; run: (query: string) => void }): VNode {
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

/** Cardinality: series by name, values by label. */
export function Cardinality({ run }: { run: (query: string) => void }): VNode {
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
