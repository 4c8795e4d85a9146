import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { type FleetEvent, fleet } from "../fleet.ts";
import { button, div, h, input, p, span, time } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import { Ago, badge, block, empty, loading, pageHead, problem } from "../parts/basics.ts";
import { isBad, machineLink, reasonOf } from "../parts/event.ts";
import { clockTime, exactTime } from "../parts/format.ts";
import { type Column, Rows } from "../parts/rows.ts";
import { remember } from "../router.ts";
import { org } from "../session.ts";

const DAY_MS = 86_400_000;

/** With seconds for today's events, which come in bursts. */
const at = (ms: number): VNode =>
  Date.now() - ms > DAY_MS
    ? h(Ago, { ms })
    : time({ dateTime: new Date(ms).toISOString(), title: exactTime(ms) }, clockTime(ms));

const COLUMNS: readonly Column<FleetEvent>[] = [
  { name: "When", class: "when", cell: ({ timestamp }) => at(timestamp) },
  { name: "State", class: "state", cell: ({ status }) => badge(status) },
  { name: "Machine", cell: machineLink },
  { name: "Event", class: "wide", cell: ({ type, source }) => span(type, span({ class: "dim" }, ` by ${source}`)) },
  { name: "Why", class: "wide why", cell: reasonOf },
];

/** Live events of the organization. */
export function Page({ query }: PageProps): VNode {
  const { events, loaded, problem: trouble } = useCell(fleet);
  const [text, setText] = useState(query.get("q") ?? "");
  const [onlyBad, setOnlyBad] = useState(false);
  const [held, setHeld] = useState<readonly FleetEvent[] | undefined>();
  const shown = useMemo(() => matching(held ?? events, text, onlyBad), [events, held, text, onlyBad]);
  const change = (next: string): void => {
    setText(next);
    remember({ q: next });
  };
  const pause = button(
    { type: "button", "aria-pressed": held !== undefined, onClick: () => setHeld(held ? undefined : events) },
    held ? `Resume (${events.length > 0 ? newer(events, held) : 0} new)` : "Hold still",
  );
  if (trouble && !loaded) return div(pageHead("Activity"), problem(trouble));
  if (!loaded) return div(pageHead("Activity"), loading());
  if (events.length === 0) {
    return div(
      pageHead("Activity"),
      empty(
        "No events yet.",
        p("Starts, stops, failures and updates of machines appear here as they happen. The same as a stream:"),
        block(`curl -N -H "Authorization: Bearer $(hangar auth token)" ${location.origin}/v1/orgs/${org()}/events`),
      ),
    );
  }
  return div(
    pageHead("Activity", pause),
    div(
      { class: "filters" },
      input({
        type: "search",
        "aria-label": "Filter events",
        placeholder: "Filter by machine, id, app, state, reason…  ( / )",
        value: text,
        onInput: (event) => change(event.currentTarget.value),
      }),
      button(
        { type: "button", class: "chip", "aria-pressed": onlyBad, onClick: () => setOnlyBad(!onlyBad) },
        "failures only",
      ),
    ),
    shown.length === 0
      ? empty("No event matches.")
      : h(Rows<FleetEvent>, { name: "Events, newest first", rows: shown, columns: COLUMNS, keyOf: ({ id }) => id }),
  );
}

const newer = (events: readonly FleetEvent[], held: readonly FleetEvent[]): number => {
  const last = held[0]?.cursor ?? 0;
  return events.filter(({ cursor }) => cursor > last).length;
};

function matching(events: readonly FleetEvent[], text: string, onlyBad: boolean): FleetEvent[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return events.filter((event) => {
    if (onlyBad && !isBad(event)) return false;
    const { machine_name, machine_id, app_name, type, status, source } = event;
    const hay =
      `${machine_name} ${machine_id} ${app_name} ${type} ${status} ${source} ${reasonOf(event)}`.toLowerCase();
    return words.every((word) => hay.includes(word));
  });
}
