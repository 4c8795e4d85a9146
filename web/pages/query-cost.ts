/** What a query cost, and how much of the limits that is. */
import type { VNode } from "preact";
import { div, li, meter, p, span, strong, ul } from "../html.ts";
import { bytes, duration, figure } from "../parts/format.ts";
import type { Cost } from "../prometheus.ts";

/** From this share of a limit on, it is said. */
const NEAR = 0.8;

interface Part {
  name: string;
  value: string;
  limit?: string;
  share?: number;
}

const HINT: Readonly<Record<string, string>> = {
  series: "name more labels in the selector",
  samples: "shorten the range or the window in [ ]",
  time: "shorten the range, or name more labels",
};

function partsOf({ series, samples, time_ms, bytes: size, limits }: Cost): Part[] {
  const bounded = (name: string, used: number | undefined, limit: number | undefined, text = figure): Part[] => {
    if (used === undefined) return [];
    const bound = limit === undefined ? {} : { limit: text(limit), share: used / limit };
    return [{ name, value: text(used), ...bound }];
  };
  return [
    ...bounded("series", series, limits?.series),
    ...bounded("samples", samples, limits?.samples),
    ...bounded("time", time_ms, limits?.time_ms, duration),
    { name: "answer", value: bytes(size) },
  ];
}

const percent = (share: number): string =>
  share < 0.001 ? "under 0.1 %" : `${figure(Math.round(share * 1000) / 10)} %`;

export function QueryCost({ cost }: { cost: Cost }): VNode {
  const parts = partsOf(cost);
  const near = parts.filter(({ share = 0 }) => share >= NEAR);
  return div(
    ul({ class: "cost", "aria-label": "What the query cost" }, ...parts.map(shown)),
    ...near.map(({ name, share = 0 }) =>
      p(
        { class: "warn-text", key: name, role: "status" },
        `Near the limit of ${name} (${percent(share)}); past it the query fails: ${HINT[name] ?? "ask for less"}.`,
      ),
    ),
    cost.samples === undefined
      ? p({ class: "dim" }, "The metrics engine of this platform does not say how many samples it read.")
      : null,
  );
}

const shown = ({ name, value, limit, share }: Part): VNode =>
  li(
    { key: name },
    span({ class: "dim" }, name),
    strong(value),
    share === undefined || limit === undefined
      ? null
      : span(
          { class: "dim of" },
          meter({ min: 0, max: 1, value: Math.min(1, share), high: NEAR, "aria-label": `${name}, share of the limit` }),
          `${percent(share)} of ${limit}`,
        ),
  );
