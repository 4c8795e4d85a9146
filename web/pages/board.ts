import type { VNode } from "preact";
import { type BoardName, board, type Drawn, draw, legendOf, type Panel, UNITS } from "../boards.ts";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, div, h, p, section, span, strong } from "../html.ts";
import { BandWords, firedIn } from "../parts/alert-bands.ts";
import { loading, useAnswer, when } from "../parts/basics.ts";
import { Chart } from "../parts/chart.ts";
import { useRounds } from "../parts/controls.ts";
import { figure } from "../parts/format.ts";
import { lastSeconds } from "../prometheus.ts";
import { to } from "../router.ts";
import { machineNames } from "./app-tab.ts";

const EVERY_MS = 15_000;

interface Props {
  name: BoardName;
  /** All apps when empty. */
  app: string;
  seconds: number;
}

/** The panels of one board, over one time range. */
export function Board({ name, app, seconds }: Props): VNode {
  const round = useRounds(EVERY_MS);
  const { machines } = useCell(fleet);
  const machine = machineNames([...machines.values()]);
  const panels = useAnswer((signal) => board(name, signal), [name]);
  const answer = useAnswer(
    async (signal) => {
      if (!panels.value) return undefined;
      const range = lastSeconds(seconds);
      const [fired, ...drawn] = await Promise.all([
        app === "" ? [] : firedIn(app, range, signal),
        ...panels.value.map((panel) => draw(panel, { app, range }, signal)),
      ]);
      return { drawn, fired };
    },
    [name, panels.value, app, seconds, round],
  );
  const error = panels.error ?? answer.error;
  if (answer.value === undefined && error === undefined) return panels.value ? skeletons(panels.value) : loading();
  return section(
    { "aria-label": `Board of ${name}` },
    when({ ...answer, value: answer.value, error }, ({ drawn, fired }) =>
      div(
        h(BandWords, { fired }),
        div({ class: "tiles" }, ...drawn.filter(isFigure).map((one) => h(Figure, { key: one.panel.title, one }))),
        div(
          { class: "charts" },
          ...drawn
            .filter((one) => !isFigure(one))
            .map(({ panel, range, series }) =>
              h(Chart, {
                key: panel.title,
                title: panel.title,
                series,
                range,
                bands: fired,
                format: UNITS[panel.unit] ?? figure,
                nameOf: ({ labels }) => legendOf(labels["legend"] ?? "", labels, machine),
                more: a(
                  {
                    href: explore(
                      panel.targets.map(({ expr }) => expr),
                      app,
                    ),
                  },
                  "Explore",
                ),
              }),
            ),
        ),
      ),
    ),
  );
}

const isFigure = ({ panel }: Pick<Drawn, "panel">): boolean => panel.type === "stat";

/** Places of what comes. */
function skeletons(panels: readonly Panel[]): VNode {
  const figures = panels.filter((panel) => isFigure({ panel }));
  return div(
    { "aria-busy": true },
    div({ class: "tiles" }, ...figures.map(({ title }) => p({ class: "tile skeleton", key: title }))),
    div(
      { class: "charts" },
      ...panels
        .filter((panel) => !isFigure({ panel }))
        .map(({ title }) => div({ class: "chart skeleton", key: title })),
    ),
  );
}

function Figure({ one: { panel, series } }: { one: Drawn }): VNode {
  const last = series[0]?.points.at(-1)?.[1];
  const format = UNITS[panel.unit] ?? figure;
  return p(
    { class: "tile" },
    strong(last === undefined || Number.isNaN(last) ? "–" : format(last)),
    span({ class: "dim" }, panel.title),
  );
}

/** The queries of a panel in the explorer. */
function explore(exprs: readonly string[], app: string): string {
  const named = exprs.map((expr) =>
    expr
      .replaceAll("$__rate_interval", "1m")
      .replaceAll("$app", app || ".*")
      .replaceAll(/\$\w+\b/g, ".*"),
  );
  return `${to("metrics", "explore")}?${new URLSearchParams(named.map((expr) => ["query", expr]))}`;
}
