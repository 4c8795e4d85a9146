/** Lines over time. The drawing is uPlot's, loaded when the first chart is shown; the legend is text. */

import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { useCell } from "../cell.ts";
import { code, div, figcaption, figure as figureElement, h, li, p, span, ul } from "../html.ts";
import { type Range, type Series, seriesName } from "../prometheus.ts";
import { isDark, theme } from "../theme.ts";
import { figure } from "./format.ts";

/** Colours that most people can distinguish, on light and dark. */
const COLOURS = ["#0d9488", "#d97706", "#6366f1", "#db2777", "#65a30d", "#0284c7", "#a855f7", "#dc2626"];
/** Height of a drawing. */
const HEIGHT = 180;
const POWERS = Array.from({ length: 51 }, (_, power) => 2 ** power);
const LINES = 40;
const LEGEND = 12;

interface Props {
  title: string;
  series: readonly Series[];
  range: Range;
  format?: (value: number) => string;
  /** Name of a line; by default its labels. */
  nameOf?: (series: Series) => string;
  height?: number;
  /** Beside the title. */
  more?: VNode;
  /** Times in which alerts fired, in seconds. */
  bands?: readonly Band[];
}

export interface Band {
  from: number;
  to: number;
}

/** All series on one time grid, with gaps. */
function aligned(series: readonly Series[], { start, end, step }: Range): uPlot.AlignedData {
  const count = Math.floor((end - start) / step) + 1;
  const times = Array.from({ length: count }, (_, index) => start + index * step);
  const lines = series.map(({ points }) => {
    const line: (number | null)[] = Array.from({ length: count }, () => null);
    for (const [at, value] of points) {
      const index = Math.round((at - start) / step);
      if (index >= 0 && index < count && Number.isFinite(value)) line[index] = value;
    }
    return line;
  });
  return [times, ...lines];
}

function options(props: Props, shown: readonly Series[], width: number): uPlot.Options {
  const { format = figure, nameOf = ({ labels }) => seriesName(labels), height = HEIGHT } = props;
  const ink = isDark() ? "#9aa4b2" : "#556070";
  const grid = { stroke: isDark() ? "#ffffff14" : "#00000012", width: 1 };
  const axis = { stroke: ink, grid, ticks: { ...grid, size: 4 }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height,
    legend: { show: false },
    hooks: { drawClear: [(plot) => shade(plot, props.bands ?? [])] },
    cursor: { y: false, points: { size: 6 } },
    scales: {
      x: { time: true },
      y: { range: (_, low, high) => (low === high ? [Math.min(0, low), high || 1] : [Math.min(0, low), high * 1.05]) },
    },
    axes: [
      { ...axis, size: 30, values: (_, ticks) => ticks.map((tick) => tickTime(tick, props.range)) },
      {
        ...axis,
        size: 76,
        values: (_, ticks) => ticks.map((tick) => format(tick)),
        // Round figures of bytes: 64 MiB and 128 MiB, not 95.4 MiB.
        ...(format(2 ** 20).startsWith("1.0 MiB") ? { incrs: POWERS } : {}),
      },
    ],
    series: [
      {},
      ...shown.map((one, index) => ({
        label: nameOf(one),
        stroke: COLOURS[index % COLOURS.length] ?? ink,
        width: 1.5,
        points: { show: false },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
      })),
    ],
  };
}

/** Bands behind the lines, from the top of the chart to its bottom; a moment is two pixels wide. */
function shade({ ctx, bbox, valToPos }: uPlot, bands: readonly Band[]): void {
  ctx.save();
  ctx.fillStyle = isDark() ? "#f8717126" : "#dc26261a";
  for (const { from, to } of bands) {
    const left = Math.max(bbox.left, valToPos(from, "x", true));
    const right = Math.min(bbox.left + bbox.width, valToPos(to, "x", true));
    if (right >= left) ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
  }
  ctx.restore();
}

/** Time format by range. */
function tickTime(seconds: number, { start, end }: Range): string {
  const at = new Date(seconds * 1000);
  if (end - start > 2 * 86_400) return at.toLocaleDateString([], { month: "short", day: "numeric" });
  const parts = { hour: "2-digit", minute: "2-digit", hour12: false } as const;
  return at.toLocaleTimeString([], end - start < 600 ? { ...parts, second: "2-digit" } : parts);
}

export function Chart(props: Props): VNode {
  const holder = useRef<HTMLDivElement>(null);
  const colours = useCell(theme);
  const shown = props.series.slice(0, LINES);
  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    let plot: uPlot | undefined;
    let over = false;
    void import("uplot").then(({ default: Plot }) => {
      if (!over) plot = new Plot(options(props, shown, element.clientWidth), aligned(shown, props.range), element);
    });
    const observer = new ResizeObserver(() =>
      plot?.setSize({ width: element.clientWidth, height: props.height ?? HEIGHT }),
    );
    observer.observe(element);
    return () => {
      over = true;
      observer.disconnect();
      plot?.destroy();
    };
  }, [props.series, colours]);
  return figureElement(
    { class: "chart" },
    figcaption(props.title, props.more ?? null),
    props.series.length === 0
      ? p({ class: "dim nothing" }, "No data in this time.")
      : div({
          ref: holder,
          class: "canvas",
          role: "img",
          "aria-label": spoken(props),
          // The drawing comes later than the rest: it takes the place that is kept for it.
          style: { minHeight: `${props.height ?? HEIGHT}px` },
        }),
    h(Legend, { ...props, shown }),
  );
}

const lastOf = ({ points }: Series): number => points.at(-1)?.[1] ?? Number.NaN;

/** Text alternative: the last value of each line. */
function spoken({ title, series, format = figure, nameOf = ({ labels }) => seriesName(labels) }: Props): string {
  const lines = series.slice(0, 5).map((one) => `${nameOf(one)} ${format(lastOf(one))}`);
  return `${title}: ${lines.join("; ")}`;
}

function Legend({
  shown,
  series,
  format = figure,
  nameOf = ({ labels }) => seriesName(labels),
}: Props & { shown: readonly Series[] }): VNode | null {
  if (shown.length === 0) return null;
  return ul(
    { class: "legend" },
    ...shown
      .slice(0, LEGEND)
      .map((one, index) =>
        li(
          { key: index },
          span({ class: "swatch", "aria-hidden": "true", style: { background: COLOURS[index % COLOURS.length] } }),
          code(nameOf(one)),
          span({ class: "dim" }, format(lastOf(one))),
        ),
      ),
    series.length > LEGEND ? li({ class: "dim" }, `and ${series.length - LEGEND} more`) : null,
  );
}
