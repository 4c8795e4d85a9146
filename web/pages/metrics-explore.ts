/** Queries with their charts and current values: several at once, and all of it in the address. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { button, code, div, form, h, p, span, table, tbody, td, th, thead, tr } from "../html.ts";
import { useAnswer, when } from "../parts/basics.ts";
import { Chart } from "../parts/chart.ts";
import { choices, named } from "../parts/controls.ts";
import { duration, figure, plural } from "../parts/format.ts";
import { lastSeconds, queryNow, queryWithCost, type Series, seriesName } from "../prometheus.ts";
import { remember } from "../router.ts";
import { machineNames } from "./app-tab.ts";
import { Cardinality, Start } from "./metrics-names.ts";
import { QueryBox } from "./query-box.ts";
import { QueryCost } from "./query-cost.ts";

const ROWS = 200;
const VIEWS = ["graph and table", "graph", "table"] as const;
type View = (typeof VIEWS)[number];

interface Asked {
  queries: readonly string[];
  round: number;
}

export function Explorer({ query, seconds }: { query: URLSearchParams; seconds: number }): VNode {
  const [typed, setTyped] = useState<readonly string[]>(() =>
    [...query.getAll("query"), ""].slice(0, Math.max(1, query.getAll("query").length)),
  );
  const [asked, setAsked] = useState<Asked>({ queries: typed, round: 0 });
  const [view, setView] = useState<View>(VIEWS[0]);
  const [revision, setRevision] = useState(0);
  const run = (queries: readonly string[]): void => {
    setTyped(queries);
    setAsked(({ round }) => ({ queries, round: round + 1 }));
    remember({ query: queries.filter((text) => text.trim() !== "") });
  };
  const put = (at: number, text: string): readonly string[] =>
    typed.map((before, index) => (index === at ? text : before));
  const replace = (queries: readonly string[]): void => {
    setRevision((n) => n + 1);
    run(queries);
  };
  const first = (text: string): void => replace([text, ...typed.slice(1)]);
  const wanted = asked.queries.map((text) => text.trim()).filter(Boolean);
  return div(
    ...typed.map((text, index) =>
      form(
        {
          key: index,
          class: "ask",
          onSubmit: (event) => {
            event.preventDefault();
            run(typed);
          },
        },
        h(QueryBox, {
          name: typed.length > 1 ? `Query ${index + 1}` : "Query",
          value: text,
          revision,
          onChange: (value) => setTyped(put(index, value)),
          onRun: (value) => run(put(index, value)),
        }),
        index === 0
          ? button({ type: "submit", class: "primary" }, "Run")
          : button({ type: "button", onClick: () => replace(typed.filter((_, at) => at !== index)) }, "Remove"),
      ),
    ),
    div(
      { class: "filters" },
      button({ type: "button", onClick: () => setTyped([...typed, ""]) }, "Add a query"),
      choices({ class: "chips", label: "Show" }, named(VIEWS), view, setView),
      span({ class: "dim" }, "MetricsQL; PromQL is understood too. Enter runs it, Ctrl Space completes."),
    ),
    wanted.length === 0 ? h(Start, { run: first }) : null,
    ...wanted.map((text, index) =>
      h(Result, { key: `${index} ${text}`, query: text, seconds, round: asked.round, view }),
    ),
    h(Cardinality, { run: first }),
  );
}

/** Series with the names of machines instead of the versions of their configs. */
function useNames(): (series: Series) => string {
  const { machines } = useCell(fleet);
  const machine = machineNames([...machines.values()]);
  return ({ labels: { instance, ...labels } }) => {
    if (instance === undefined) return seriesName(labels);
    return seriesName({ ...labels, machine: machine(instance) });
  };
}

function Result({ query, seconds, round, view }: { query: string; seconds: number; round: number; view: View }): VNode {
  const nameOf = useNames();
  const answer = useAnswer(
    async (signal) => {
      const range = lastSeconds(seconds);
      const begun = performance.now();
      const [{ series: over, cost }, now] = await Promise.all([
        queryWithCost(query, range, signal),
        queryNow(query, signal),
      ]);
      return { range, over, now, cost, took_ms: performance.now() - begun };
    },
    [query, seconds, round],
  );
  return div(
    { class: "result" },
    when(answer, ({ range, over, now, cost, took_ms }) => {
      const points = over.reduce((sum, one) => sum + one.points.length, 0);
      return div(
        view === "table" ? null : h(Chart, { title: query, series: over, range, height: 300, nameOf }),
        p(
          { class: "dim" },
          `${plural(over.length, "series", "series")}, ${plural(points, "point")}, ${duration(took_ms)}`,
        ),
        h(QueryCost, { cost }),
        view === "graph" ? null : h(Values, { series: now, nameOf }),
      );
    }),
  );
}

function Values({ series, nameOf }: { series: readonly Series[]; nameOf: (series: Series) => string }): VNode | null {
  if (series.length === 0) return null;
  return div(
    { class: "table-wrap", tabIndex: 0, role: "region", "aria-label": "Values" },
    table(
      { class: "plain" },
      thead(tr(th({ scope: "col" }, "series"), th({ scope: "col", class: "number" }, "now"))),
      tbody(
        ...series
          .slice(0, ROWS)
          .map((one, index) =>
            tr(
              { key: index },
              td(code(nameOf(one))),
              td({ class: "number" }, figure(one.points[0]?.[1] ?? Number.NaN)),
            ),
          ),
      ),
    ),
    series.length > ROWS ? p({ class: "dim" }, `and ${series.length - ROWS} more`) : null,
  );
}
