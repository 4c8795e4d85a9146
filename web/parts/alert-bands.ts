/** When alerts of an app fired: bands behind its charts, and the same in words. */
import type { VNode } from "preact";
import { a, p } from "../html.ts";
import { queryRange, type Range } from "../prometheus.ts";
import { to } from "../router.ts";
import type { Band } from "./chart.ts";

export interface Fired extends Band {
  alertname: string;
}

/** Runs of the steps of `ALERTS`. `more` is a further matcher, such as that of one machine's alerts. */
export async function firedIn(app_name: string, range: Range, signal: AbortSignal, more = ""): Promise<Fired[]> {
  const matchers = [`app=${JSON.stringify(app_name)}`, 'alertstate="firing"', ...(more ? [more] : [])];
  const found = await queryRange(`max by (alertname) (ALERTS{${matchers.join(", ")}})`, range, signal);
  return found.flatMap(({ labels: { alertname = "" }, points }) => {
    const runs: Fired[] = [];
    for (const [at] of points) {
      const last = runs.at(-1);
      if (last && at - last.to <= range.step) last.to = at;
      else runs.push({ alertname, from: at, to: at });
    }
    return runs;
  });
}

/** The bands as text, for screen readers. */
export function BandWords({ fired }: { fired: readonly Fired[] }): VNode | null {
  const names = [...new Set(fired.map(({ alertname }) => alertname))];
  if (names.length === 0) return null;
  return p({ class: "dim" }, "Shaded: while ", a({ href: to("alerts") }, names.join(", ")), " fired.");
}
