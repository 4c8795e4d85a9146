/** Plots series with braille characters, each of two by four dots. */

export interface Line {
  name: string;
  points: readonly (readonly [seconds: number, value: number])[];
}

interface PlotSize {
  columns: number;
  rows: number;
}

const DOTS = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const BARS = "▁▂▃▄▅▆▇█";

/** The plot with its scale at the left and its time below. */
export function plot(lines: readonly Line[], { columns, rows }: PlotSize): string {
  const points = lines.flatMap((line) => line.points).filter(([, value]) => Number.isFinite(value));
  if (points.length === 0) return "no points";
  const times = points.map(([seconds]) => seconds);
  const values = points.map(([, value]) => value);
  const [start, end] = [least(times), most(times)];
  const [low, high] = bounds(least(values), most(values));
  const cells = Array.from({ length: rows }, () => new Uint8Array(columns));
  const place = ([seconds, value]: readonly [number, number]): Place => ({
    x: scale(seconds, start, end, columns * 2 - 1),
    y: rows * 4 - 1 - scale(value, low, high, rows * 4 - 1),
  });
  for (const line of lines) {
    const places = line.points.filter(([, value]) => Number.isFinite(value)).map(place);
    for (const [i, to] of places.entries()) draw(cells, places[i - 1] ?? to, to);
  }
  const scales = [shortNumber(high), shortNumber((low + high) / 2), shortNumber(low)];
  const width = Math.max(...scales.map((text) => text.length));
  const drawn = cells.map((row, i) => {
    const text = i === 0 ? scales[0] : i === rows - 1 ? scales[2] : i === rows >> 1 ? scales[1] : "";
    return `${(text ?? "").padStart(width)} ┤${Array.from(row, (bits) => String.fromCodePoint(0x2800 + bits)).join("")}`;
  });
  const from = timeText(start);
  return [
    ...drawn,
    `${" ".repeat(width + 2)}${from}${timeText(end).padStart(Math.max(1, columns - from.length))}`,
  ].join("\n");
}

interface Place {
  x: number;
  y: number;
}

/** A straight line of dots. */
function draw(cells: readonly Uint8Array[], from: Place, to: Place): void {
  const steps = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y), 1);
  for (let step = 0; step <= steps; step++) {
    const x = Math.round(from.x + ((to.x - from.x) * step) / steps);
    const y = Math.round(from.y + ((to.y - from.y) * step) / steps);
    const row = cells[y >> 2];
    const dot = DOTS[y & 3]?.[x & 1];
    if (row && dot !== undefined) row[x >> 1] = (row[x >> 1] ?? 0) | dot;
  }
}

/** One line of characters for one series. */
export function sparkline(values: readonly number[], columns: number): string {
  const shown = values.filter((value) => Number.isFinite(value)).slice(-columns);
  if (shown.length === 0) return "";
  const [low, high] = bounds(least(shown), most(shown));
  return shown.map((value) => BARS[scale(value, low, high, BARS.length - 1)] ?? " ").join("");
}

const least = (list: readonly number[]): number => list.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const most = (list: readonly number[]): number => list.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);

/** A constant series still needs a height. */
function bounds(low: number, high: number): [number, number] {
  return low === high ? [Math.min(0, low), high === 0 ? 1 : Math.max(0, high)] : [low, high];
}

function scale(value: number, low: number, high: number, steps: number): number {
  return high === low ? 0 : Math.round(((value - low) / (high - low)) * steps);
}

/** Three digits and a suffix: 1.23k, 45.6M, 0.00789. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  const [by, suffix] = (
    [
      [1e12, "T"],
      [1e9, "G"],
      [1e6, "M"],
      [1e3, "k"],
    ] as const
  ).find(([least_]) => size >= least_) ?? [1, ""];
  return `${Number((value / by).toPrecision(3))}${suffix}`;
}

function timeText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(5, 16).replace("T", " ");
}
