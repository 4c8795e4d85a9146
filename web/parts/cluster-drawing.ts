/** The nodes of a cluster as a drawing: the primary, its replicas, and how far each of them is behind. */
import type { VNode } from "preact";
import { g, line, rect, svg, svgText, title } from "../html.ts";

export interface DrawnNode {
  key: string;
  name: string;
  role: "primary" | "replica" | "unreachable";
  /** Lag, as the label of the line to the primary. */
  lag: string;
  state: "good" | "late" | "bad";
}

const WIDTH = 640;
const ROW = 56;
const BOX = { width: 190, height: 38 } as const;
const NAME_CHARS = 22;

const short = (name: string): string => (name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS - 1)}…` : name);

const inWords = ({ name, role, lag }: DrawnNode): string => `${name}: ${role}${role === "replica" ? `, ${lag}` : ""}`;

/** A single node is not drawn. */
export function clusterDrawing(app: string, nodes: readonly DrawnNode[]): VNode | null {
  if (nodes.length < 2) return null;
  const primary = nodes.find(({ role }) => role === "primary");
  const others = nodes.filter((node) => node !== primary);
  const height = Math.max(1, others.length) * ROW;
  const label = `Nodes of ${app}: ${nodes.map(inWords).join("; ")}`;
  return svg(
    { class: "cluster", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label },
    ...others.map((node, row) => arrow(node, primary !== undefined, height / 2, row * ROW + ROW / 2)),
    primary ? box(primary, 1, height / 2) : null,
    ...others.map((node, row) => box(node, WIDTH - BOX.width - 1, row * ROW + ROW / 2)),
  );
}

/** A line from the primary to a replica; dashed when one of them is missing. */
function arrow({ key, state, role, lag }: DrawnNode, has_primary: boolean, from: number, to: number): VNode {
  const broken = !has_primary || role === "unreachable";
  const [left, right] = [BOX.width + 1, WIDTH - BOX.width - 1];
  const label = broken ? "not connected" : lag;
  // A line that comes from above leaves room below it.
  const y = to > from ? to + 17 : to - 7;
  return g(
    { key: `way ${key}`, class: broken ? "broken" : state },
    line({ x1: left, y1: from, x2: right, y2: to }),
    svgText({ x: right - 12, y, "text-anchor": "end", class: "lag" }, label),
  );
}

function box(node: DrawnNode, x: number, middle: number): VNode {
  const { key, name, role, state } = node;
  const y = middle - BOX.height / 2;
  return g(
    { key: `box ${key}`, class: `${role} ${state}` },
    title(inWords(node)),
    rect({ x, y, rx: 6, ...BOX }),
    svgText({ x: x + 12, y: middle - 3, class: "name" }, short(name)),
    svgText({ x: x + 12, y: middle + 12, class: "role" }, role),
  );
}
