import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { useCell } from "../cell.ts";
import { type Counts, countsOf, fleet } from "../fleet.ts";
import { a, code, div, h, li, meter, ol, p, span, strong } from "../html.ts";
import { FiringAlerts } from "../parts/alerts.ts";
import { Ago, badge, card, loading, pageHead, problem, sheet, useAnswer, when } from "../parts/basics.ts";
import { useRounds } from "../parts/controls.ts";
import { machineLink } from "../parts/event.ts";
import { figure, megabytes } from "../parts/format.ts";
import { icon } from "../parts/icon.ts";
import { to } from "../router.ts";
import { call, isReadOnly, session } from "../session.ts";
import { AppRows } from "./overview-apps.ts";
import { StartPage } from "./start-page.ts";

/** Pause between two requests for the hosts. */
const EVERY_MS = 5000;

/** Every app with its state, what fails on top, hosts and recent activity. */
export function Page(): VNode {
  const live = useCell(fleet);
  const readOnly = isReadOnly(useCell(session));
  const { machines, counts: known, loaded, events, problem: trouble } = live;
  const counts = useMemo(() => known ?? countsOf([...machines.values()]), [live]);
  if (trouble && !loaded) return div(pageHead("Overview"), problem(trouble));
  if (!loaded) return div(pageHead("Overview"), loading());
  const make = a({ class: "button primary", href: to("machines", "new") }, icon("plus"), "New machine");
  return div(
    pageHead("Overview", readOnly ? null : make),
    h(FiringAlerts, { app_name: undefined }),
    h(AppRows, { nothing: h(StartPage, { readOnly }) }),
    counts.machines === 0 ? null : tiles(counts),
    div(
      { class: "columns" },
      card(
        "Recent activity",
        events.length === 0
          ? p({ class: "dim" }, "Events of machines appear here as they happen.")
          : ol(
              { class: "feed" },
              ...events
                .slice(0, 8)
                .map((event) =>
                  li({ key: event.id }, badge(event.status), machineLink(event), h(Ago, { ms: event.timestamp })),
                ),
            ),
        events.length > 8 ? p(a({ href: to("activity") }, "All activity")) : null,
      ),
      h(Hosts, {}),
    ),
  );
}

/** Machines by state, linked to the filtered table. */
function tiles({ machines, states, exact }: Counts): VNode {
  const shown = Object.entries(states).sort(([, x], [, y]) => y - x);
  return div(
    { class: "tiles" },
    a({ class: "tile", href: to("machines") }, strong(`${figure(machines)}${exact ? "" : "+"}`), span("machines")),
    ...shown.map(([state, count]) =>
      a({ class: "tile", key: state, href: `${to("machines")}?state=${state}` }, strong(figure(count)), badge(state)),
    ),
  );
}

function Hosts(): VNode {
  const round = useRounds(EVERY_MS);
  const answer = useAnswer((signal) => call("GET /v1/platform/hosts", { signal }), [round]);
  return card(
    "Hosts",
    when(answer, ({ hosts }) =>
      sheet(
        "Hosts",
        ["host", "CPUs", "memory"],
        hosts.map((host) => ({
          key: host.id,
          cells: [
            span(a({ href: to("hosts") }, code(host.id)), " ", host.state === "ok" ? null : badge(host.state)),
            share(host.used_cpus, host.cpus, figure, "CPUs"),
            share(host.used_memory_mb, host.memory_mb, megabytes, "memory"),
          ],
        })),
      ),
    ),
  );
}

/** Fraction in use; 0 means unlimited. */
export function share(used: number, all: number, format: (n: number) => string, name: string): VNode {
  if (all === 0) return span(`${format(used)} taken`);
  return span(
    { class: "share" },
    meter({ min: 0, max: all, value: used, high: all * 0.9, "aria-label": `${name} taken` }),
    `${format(used)} of ${format(all)}`,
  );
}
