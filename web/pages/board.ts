import type { VNode } from "preact";
import { type BoardName, board, type Drawn, draw, legendOf, UNITS } from "../boards.ts";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, div, h, p, section, span, strong } from "../html.ts";
import { useAnswer, when } from "../parts/basics.ts";
import { Chart } from "../parts/chart.ts";
import { useRounds } from "../parts/controls.ts";
import { figure } from "../parts/format.ts";
import { to } from "../router.ts";
import { machineNames } from "./app-tab.ts";

const EVERY_MS = 15_000;
const SKELETONS = 6;

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
  const answer = useAnswer(
    async (signal) => {
      const panels = await board(name, signal);
      return await Promise.all(panels.map((panel) => draw(panel, { app, seconds }, signal)));
    },
    [name, app, seconds, round],
  );
  if (answer.value === undefined && answer.error === undefined)
    return div(
      { class: "charts", "aria-busy": true },
      ...Array.from({ length: SKELETONS }, (_, index) => div({ class: "chart skeleton", key: index })),
    );
  return section(
    { "aria-label": `Board of ${name}` },
    when(answer, (drawn) =>
      div(
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

const isFigure = ({ panel }: Drawn): boolean => panel.type === "stat";

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
