/** Boards of charts, from the same files that Grafana gets: what is drawn there is drawn here. */
import { bytes, figure } from "./parts/format.ts";
import { queryRange, type Range, type Series } from "./prometheus.ts";

export const BOARDS = [
  ["apps", "Apps"],
  ["machines", "Machines"],
  ["edge", "Edge"],
  ["hosts", "Hosts"],
  ["volumes", "Volumes"],
  ["postgres", "Databases"],
] as const;

export type BoardName = (typeof BOARDS)[number][0];

export interface Panel {
  title: string;
  type: string;
  unit: string;
  targets: { expr: string; legendFormat: string }[];
}

interface GrafanaFile {
  panels: {
    title: string;
    type: string;
    fieldConfig?: { defaults?: { unit?: string } };
    targets?: { expr: string; legendFormat?: string }[];
  }[];
}

const TRIES = 3;

/** The files are part of the dashboard, below its own address. */
export async function board(name: BoardName, signal: AbortSignal): Promise<Panel[]> {
  for (let tries = 1; ; tries++) {
    try {
      const response = await fetch(new URL(`./boards/${name}.json`, import.meta.url), { signal });
      if (!response.ok) throw new Error(`the board ${name} could not be read (${response.status})`);
      return ((await response.json()) as GrafanaFile).panels.map(panelOf);
    } catch (thrown) {
      if (tries === TRIES || signal.aborted) throw thrown;
    }
  }
}

const panelOf = ({ title, type, fieldConfig, targets = [] }: GrafanaFile["panels"][number]): Panel => ({
  title,
  type,
  unit: fieldConfig?.defaults?.unit ?? "short",
  targets: targets.map(({ expr, legendFormat = "" }) => ({ expr, legendFormat })),
});

const SCRAPE_S = 15;

/** Grafana's variables filled in: an app, or all of them, and a window with four samples at least. */
export function filled(expr: string, app: string, { step }: Range): string {
  const window = `${Math.max(4 * SCRAPE_S, 4 * step)}s`;
  const named = app === "" ? ".*" : app.replaceAll(/[.+*?^$()[\]{}|\\]/g, "\\\\$&");
  return expr
    .replaceAll("$__rate_interval", window)
    .replaceAll("$app", named)
    .replaceAll(/\$\w+\b/g, ".*");
}

/** A line's name by Grafana's pattern: `{{instance}} used`. */
export function legendOf(
  pattern: string,
  labels: Record<string, string>,
  machine: (instance: string) => string,
): string {
  return pattern
    .replaceAll(/\{\{\s*(\w+)\s*\}\}/g, (_, name: string) =>
      name === "instance" ? machine(labels["instance"] ?? "") : (labels[name] ?? ""),
    )
    .trim();
}

export interface Drawn {
  panel: Panel;
  range: Range;
  series: Series[];
}

/** Everything of a panel; each series has the pattern of its name as the label `legend`. */
export async function draw(
  panel: Panel,
  { app, range }: { app: string; range: Range },
  signal: AbortSignal,
): Promise<Drawn> {
  const found = await Promise.all(
    panel.targets.map(async ({ expr, legendFormat }) =>
      (await queryRange(filled(expr, app, range), range, signal)).map(({ labels, points }) => ({
        labels: { ...labels, legend: legendFormat },
        points,
      })),
    ),
  );
  return { panel, range, series: found.flat() };
}

const seconds = (value: number): string =>
  value < 1 ? `${figure(Math.round(value * 10_000) / 10)} ms` : `${figure(value)} s`;
const percent = (value: number): string => `${figure(Math.round(value * 100) / 100)} %`;

/** Grafana's units. */
export const UNITS: Record<string, (value: number) => string> = {
  short: figure,
  reqps: (value) => `${figure(value)}/s`,
  percent,
  percentunit: (value) => percent(value * 100),
  s: seconds,
  bytes,
  Bps: (value) => `${bytes(value)}/s`,
};
