/** A small line without axes: how a figure moved, for a row of a table. */
import type { VNode } from "preact";
import { path, span, svg } from "../html.ts";
import { figure } from "./format.ts";

const [WIDTH, HEIGHT] = [96, 22];

export function Spark({ name, values }: { name: string; values: readonly number[] }): VNode {
  const drawn = values.filter(Number.isFinite);
  if (drawn.length < 2) return span({ class: "dim spark" }, "–");
  const top = Math.max(...drawn) || 1;
  const at = (value: number, index: number): string =>
    `${((index / (drawn.length - 1)) * WIDTH).toFixed(1)} ${(HEIGHT - 1 - (value / top) * (HEIGHT - 2)).toFixed(1)}`;
  const label = `${name}: ${figure(drawn.at(-1) ?? 0)} now, ${figure(top)} at most`;
  return svg(
    {
      class: "spark",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      width: WIDTH,
      height: HEIGHT,
      role: "img",
      "aria-label": label,
    },
    path({ d: `M${drawn.map(at).join("L")}` }),
  );
}
